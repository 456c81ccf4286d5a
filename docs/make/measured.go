package main

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// measured has the results of one file of bench/results, which scripts/measure.sh writes in the format of Go's
// benchmarks.
type measured struct {
	about  map[string][]string  // the lines that are no results: when, where and by which commands
	tables []string             // the names of results without their last part, in their order
	rows   map[string][]string  // the last parts in a table
	docs   map[string]string    // of a table
	values map[result][]float64 // one for each repetition
}

// result is one number. That without a unit is how often it was done.
type result struct{ table, row, unit string }

func parse(file io.Reader) (measured, error) {
	m := measured{about: map[string][]string{}, rows: map[string][]string{}, docs: map[string]string{}, values: map[result][]float64{}}
	doc := ""
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		name, is := strings.CutPrefix(lines.Text(), "Benchmark")
		if !is {
			key, value, _ := strings.Cut(lines.Text(), ": ")
			if m.about[key] = append(m.about[key], value); key == "doc" {
				doc = value
			}
			continue
		}
		words := slices.Insert(strings.Fields(name), 2, "") // the unit of how often it was done
		table, row := path.Split(words[0])
		row = strings.TrimPrefix(row, "lock=")
		if m.docs[table] = doc; !slices.Contains(m.tables, table) {
			m.tables = append(m.tables, table)
		}
		if !slices.Contains(m.rows[table], row) {
			m.rows[table] = append(m.rows[table], row)
		}
		for i := 1; i+1 < len(words); i += 2 {
			value, err := strconv.ParseFloat(words[i], 64)
			if err != nil {
				return m, fmt.Errorf("%s: %w", words[0], err)
			}
			of := result{table, row, words[i+1]}
			m.values[of] = append(m.values[of], value)
		}
	}
	return m, lines.Err()
}

// median returns NaN for what was not measured.
func (m measured) median(table, row, unit string) float64 {
	values := slices.Sorted(slices.Values(m.values[result{table, row, unit}]))
	if len(values) == 0 {
		return math.NaN()
	}
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

func show(value float64, decimals int) string {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return "–"
	}
	return strconv.FormatFloat(value, 'f', decimals, 64)
}

// code is a name as it is written in a page. Names in the format have no spaces.
func code(name string) string { return "`" + strings.ReplaceAll(name, "_", " ") + "`" }

// grid is a table in Markdown.
func grid(corner string, columns, rows []string, row func(name string) (title string, cells []string)) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | %s |\n|---|%s\n", corner, strings.Join(columns, " | "), strings.Repeat("---:|", len(columns)))
	for _, name := range rows {
		title, cells := row(name)
		fmt.Fprintf(&b, "| %s | %s |\n", title, strings.Join(cells, " | "))
	}
	return b.String()
}

// source says when, where and how it was measured.
func (m measured) source(name string) string {
	about := func(key, between string) string { return strings.Join(m.about[key], between) }
	return fmt.Sprintf("\n%s, at commit %s; %s; load average %s: [`%s`](../bench/results/%s.txt).\n",
		about("date", ""), about("commit", ""), about("machine", ""), about("load", ""), about("command", "`, `"), name)
}

// scale is a table of bench scale, with a column for each of its tables. The numbers are relative to a row of their
// column, where one is named.
func (m measured) scale(unit, base string, rows ...string) string {
	var columns []string
	for _, t := range m.tables {
		columns = append(columns, strings.ReplaceAll(path.Base(t), "_", " "))
	}
	if rows == nil {
		for _, t := range m.tables {
			for _, row := range m.rows[t] {
				if !slices.Contains(rows, row) {
					rows = append(rows, row)
				}
			}
		}
	}
	return grid("", columns, rows, func(row string) (string, []string) {
		var cells []string
		for _, t := range m.tables {
			value := m.median(t, row, unit)
			if base != "" {
				value /= m.median(t, base, unit)
			}
			cell := show(value, 2)
			if rejected := m.median(t, row, "rejected-of-sold"); rejected >= 0.05 && unit == "of-first" {
				cell += fmt.Sprintf(", %.1f rejected for each", rejected)
			}
			cells = append(cells, cell)
		}
		return code(row), cells
	})
}

// holds has the share of every lock in each shape in which it competes with a mutex.
func (m measured) holds() string {
	var shapes []string
	for _, t := range m.tables {
		if slices.Contains(m.rows[t], "mutex") && strings.HasPrefix(t, "Hold/") && !strings.Contains(t, "shape=1x1/") {
			shapes = append(shapes, t)
		}
	}
	locks := m.rows[shapes[0]]
	return grid("shape, section", append([]string{"section, µs"}, each(locks, code)...), shapes, func(t string) (string, []string) {
		cells := []string{show(1e6/m.median(t, "mutex", "holds/s"), 0)}
		for _, l := range locks {
			cells = append(cells, show(m.median(t, l, "of-mutex"), 2))
		}
		shape := strings.NewReplacer("Hold/shape=", "", "/section=", ", ", "/pause=", ", with pauses of ").Replace(strings.TrimSuffix(t, "/"))
		return shape, cells
	})
}

func each(names []string, f func(string) string) (all []string) {
	for _, name := range names {
		all = append(all, f(name))
	}
	return all
}

// cost has what else a hold costs, and what a pair costs without contention.
func (m measured) cost() string {
	const contended, alone, kept = "Hold/shape=4x8/section=redis/", "Hold/shape=pairs/section=empty/", "Hold/shape=hold-1000/section=empty/"
	columns := []string{"of the mutex", "longest wait, ms", "fairness", "requests", "Redis µs", "allocations", "uncontended, of `SET NX PX`", "requests for each kept lock and lease"}
	return grid("lock", columns, m.rows[contended], func(l string) (string, []string) {
		return code(l), []string{show(m.median(contended, l, "of-mutex"), 2), show(1000*m.median(contended, l, "max-sec"), 0), show(m.median(contended, l, "jain"), 3), show(m.median(contended, l, "requests/op"), 2),
			show(1e6*m.median(contended, l, "redis-sec/op"), 0), show(m.median(contended, l, "allocs/op"), 0),
			show(m.median(alone, l, "of-raw"), 2), show(m.median(kept, l, "requests/op")/1000, 1)}
	})
}

// pairs compares the forms of an uncontended pair of this repository's lock.
func (m measured) pairs() string {
	return grid("caller", []string{"of `SET NX PX`", "of `bsm/redislock`"}, []string{"pairs", "pairs-cancellable", "pairs-wait"}, func(form string) (string, []string) {
		t := "Hold/shape=" + form + "/section=empty/"
		return code(form), []string{show(m.median(t, "stocklock", "of-raw"), 2), show(m.median(t, "stocklock", "of-bsm"), 2)}
	})
}

// sales has whole sales under the lock and without it.
func (m measured) sales() string {
	var rows []string
	for _, t := range m.tables {
		if strings.HasPrefix(t, "Sale/") {
			rows = append(rows, each(m.rows[t], func(row string) string { return t + row })...)
		}
	}
	return grid("shops, strategy", []string{"sales, of `mutex`", "sales, of `for-update`", "p99, of `for-update`"}, rows, func(name string) (string, []string) {
		t, row := path.Split(name)
		return strings.TrimSuffix(strings.TrimPrefix(t, "Sale/shops="), "/") + ", " + code(row), []string{show(m.median(t, row, "of-mutex"), 2),
			show(m.median(t, row, "of-for-update"), 2), show(m.median(t, row, "p99-sec")/m.median(t, "for-update", "p99-sec"), 2)}
	})
}

// shops has for each case of bench/shops its sellers, of which the first is the base.
func (m measured) shops() string {
	var b strings.Builder
	for _, t := range m.tables {
		of := func(row, unit string) string { return show(m.median(t, row, unit)/m.median(t, m.rows[t][0], unit), 2) }
		b.WriteString(grid(m.docs[t], []string{"answers", "refused %", "conflict %", "p95", "processor time of the shop", "of all"}, m.rows[t], func(row string) (string, []string) {
			return code(row), []string{of(row, "answers/s"), show(m.median(t, row, "refused-%"), 1), show(m.median(t, row, "conflict-%"), 1), of(row, "p95-ms"), of(row, "shop-µs"), of(row, "all-µs")}
		}) + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// soaks has a line for each soak.
func (m measured) soaks() string {
	columns := []string{"worst-recovery-s", "seconds", "customers", "in-doubt-at-first", "orders", "lines", "units", "findings"}
	return grid("soak", append([]string{"faults"}, each(columns, func(c string) string { return strings.ReplaceAll(c, "-", " ") })...), m.rows["Soak/"], func(row string) (string, []string) {
		cells := []string{show(m.median("Soak/", row, ""), 0)}
		for i, unit := range columns {
			cells = append(cells, show(m.median("Soak/", row, unit), 2*max(0, 1-i)))
		}
		return strings.ReplaceAll(row, "=", " "), cells
	})
}

// migration has a column for each number of orders.
func (m measured) migration() string {
	columns := each(m.tables, func(t string) string { return strings.ReplaceAll(path.Base(t), "_", " ") + " orders" })
	return grid("", columns, m.rows[m.tables[0]], func(row string) (string, []string) {
		return strings.ReplaceAll(row, "_", " "), each(m.tables, func(t string) string {
			var said []string
			for _, unit := range []string{"s", "sales", "refused", "ms"} {
				if value := m.median(t, row, unit); !math.IsNaN(value) {
					said = append(said, strconv.FormatFloat(value, 'f', -1, 64)+" "+unit)
				}
			}
			return strings.Join(said, ", ")
		})
	})
}

// measuredPages are the pages with tables of what is measured.
func measuredPages(folder string) ([]page, error) {
	files := map[string]measured{}
	for _, name := range []string{"lock", "hot", "items", "crowds", "topologies", "baskets", "shops", "soaks", "migration"} {
		file, err := os.Open(filepath.Join(folder, name+".txt"))
		if err != nil {
			return nil, err
		}
		defer file.Close()
		if files[name], err = parse(file); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	scaled := func(name string) string { return files[name].scale("of-first", "") + files[name].source(name) }
	lock, hot := files["lock"], files["hot"]
	return []page{
		{language: english, path: "operate.md", made: map[string]string{"items": scaled("items")}},
		{language: english, path: "measurements.md", made: map[string]string{
			"lock": lock.holds() + lock.source("lock"), "lock: cost": lock.cost(),
			"lock: pairs": lock.pairs(), "lock: sales": lock.sales(), "hot": scaled("hot"), "hot: p99": hot.scale("p99-of-first", "", "batched", "for-update"),
			"hot: fence": hot.scale("of-first", "for-update", "for-update", "fenced-relative", "reentrant", "fenced"),
			"crowds":     scaled("crowds"), "topologies": scaled("topologies"), "baskets": scaled("baskets"),
			"shops": files["shops"].shops() + files["shops"].source("shops"), "soaks": files["soaks"].soaks() + files["soaks"].source("soaks"),
			"migration": files["migration"].migration() + files["migration"].source("migration"),
		}},
	}, nil
}
