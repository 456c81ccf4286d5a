package measure

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"

	"stocklock/bench/lock"
)

// Unit is one number of a result. [Units] lists them.
type Unit struct {
	Name  string  // in the Go benchmark format
	Head  string  // of its column
	Scale float64 // from the unit of the format to that of the column
	Form  string  // of package fmt
	// Better is 1 where more is better and -1 where less is. It is 0 for a number that is not compared
	// with a baseline, because it depends on the machine more than on the lock.
	Better int
	Ratio  bool // its range is shown
	Total  bool // of all repetitions, and not their median
}

// The units that are asked for by name.
const (
	Rate       = "holds/s"
	Sales      = "sales/s"
	OverSec    = "over-sec"   // of a hold, beyond that of the mutex
	OverTrips  = "over-trips" // the same in round trips to Redis
	TripSec    = "trip-sec"   // of one client, before the trial; the median
	OfMutex    = "of-" + Limit
	OfFirst    = "of-first" // of what the first row of a scale sold in the same round
	Requests   = "requests/op"
	LostUnit   = "lost"   // updates
	ErrorsUnit = "errors" // of which one is printed
)

// Units has the columns of all tables in their order. A table has those that were measured in its cell.
// An operation is a hold; for locks that are kept, a lease of all of them.
var Units = []Unit{
	{Name: OfMutex, Head: "of mutex", Scale: 1, Form: "%.2f", Better: 1, Ratio: true},
	{Name: OfFirst, Head: "of the first", Scale: 1, Form: "%.2f", Better: 1, Ratio: true},
	{Name: "of-" + Ours, Head: "of ours", Scale: 1, Form: "%.2f"},
	{Name: "of-for-update", Head: "of for-update", Scale: 1, Form: "%.2f", Better: 1, Ratio: true},
	{Name: OverSec, Head: "µs over", Scale: 1e6, Form: "%.0f"},
	{Name: OverTrips, Head: "trips over", Scale: 1, Form: "%.1f"},
	{Name: Rate, Head: "holds/s", Scale: 1, Form: "%.0f"},
	{Name: Sales, Head: "sales/s", Scale: 1, Form: "%.0f"},
	{Name: "sec/op", Head: "µs", Scale: 1e6, Form: "%.0f"},
	{Name: "of-raw", Head: "of raw", Scale: 1, Form: "%.2f", Better: -1, Ratio: true},
	{Name: "of-bsm", Head: "of bsm", Scale: 1, Form: "%.2f", Better: -1, Ratio: true},
	{Name: "p50-sec", Head: "p50 ms", Scale: 1e3, Form: "%.2f"},
	{Name: "p99-sec", Head: "p99 ms", Scale: 1e3, Form: "%.1f"},
	{Name: "max-sec", Head: "max ms", Scale: 1e3, Form: "%.0f"},
	{Name: "jain", Head: "Jain", Scale: 1, Form: "%.3f", Better: 1},
	{Name: Requests, Head: "requests", Scale: 1, Form: "%.2f", Better: -1},
	{Name: "net-B/op", Head: "bytes", Scale: 1, Form: "%.0f"},
	{Name: "redis-sec/op", Head: "Redis µs", Scale: 1e6, Form: "%.0f"},
	{Name: "allocs/op", Head: "allocs", Scale: 1, Form: "%.0f", Better: -1},
	{Name: LostUnit, Head: "lost", Scale: 1, Form: "%.0f", Total: true},
	{Name: ErrorsUnit, Head: "errors", Scale: 1, Form: "%.0f", Total: true},
}

// The locks and strategies that others are compared with.
const (
	Ours  = "stocklock"
	Limit = "mutex"
)

// Relate adds to the results of one repetition of one cell what each is of others in it: a temporary
// slowdown of the machine affects both.
func Relate(same []*benchfmt.Result, unit string) {
	for _, name := range []string{Limit, Ours, "for-update"} {
		i := slices.IndexFunc(same, func(r *benchfmt.Result) bool { return lockOf(r) == name })
		if i < 0 {
			continue
		}
		base, _ := same[i].Value(unit)
		trip, timed := same[i].Value(TripSec)
		for _, r := range same {
			mine, ok := r.Value(unit)
			if !ok || base == 0 {
				continue
			}
			r.Values = append(r.Values, benchfmt.Value{Value: mine / base, Unit: "of-" + name})
			if timed && name == Limit && mine > 0 {
				over := 1/mine - 1/base
				r.Values = append(r.Values, benchfmt.Value{Value: over, Unit: OverSec}, benchfmt.Value{Value: over / trip, Unit: OverTrips})
			}
		}
	}
}

// Table has what was measured of several locks under the same conditions.
type Table struct {
	Name string // such as that of a [Cell]
	Rows []Row
}

// Row has the results of one lock, or of a strategy of the shop: one for each repetition, in order.
type Row struct {
	Name    string
	Results []*benchfmt.Result
}

const lockPart = "/lock="

// NewResult returns the result of a lock in the cell of that name.
func NewResult(cell, lock string, config []benchfmt.Config, s Sample) *benchfmt.Result {
	return &benchfmt.Result{Config: config, Name: benchfmt.Name(inName(cell + lockPart + lock)), Iters: max(s.Operations, 1), Values: s.Values}
}

// inName is a name as the format of Go's benchmarks has it, without spaces.
func inName(name string) string { return strings.ReplaceAll(name, " ", "_") }

func lockOf(r *benchfmt.Result) string {
	_, name, _ := strings.Cut(string(r.Name), lockPart)
	return name
}

// Tables collects results. The locks are in the order of lock.All.
func Tables(results []*benchfmt.Result) []Table {
	var tables []Table
	for _, r := range results {
		cell, name, _ := strings.Cut(string(r.Name), lockPart)
		t := at(&tables, func(t Table) bool { return t.Name == cell }, Table{Name: cell})
		row := at(&t.Rows, func(r Row) bool { return r.Name == name }, Row{Name: name})
		row.Results = append(row.Results, r)
	}
	for _, t := range tables {
		slices.SortStableFunc(t.Rows, func(a, b Row) int { return cmp.Compare(lock.Place(a.Name), lock.Place(b.Name)) })
	}
	return tables
}

// at returns the element that is meant. Without one it appends the fallback.
func at[T any](all *[]T, meant func(T) bool, fallback T) *T {
	i := slices.IndexFunc(*all, meant)
	if i < 0 {
		i, *all = len(*all), append(*all, fallback)
	}
	return &(*all)[i]
}

// TableOf returns the table of that name, without rows if there is none.
func TableOf(tables []Table, name string) Table {
	return *at(&tables, func(t Table) bool { return t.Name == inName(name) }, Table{})
}

// Row returns the row of that name, without results if there is none.
func (t Table) Row(name string) Row {
	return *at(&t.Rows, func(r Row) bool { return r.Name == inName(name) }, Row{})
}

// Sample returns one number of each result that has it.
func (r Row) Sample(unit string) *benchmath.Sample {
	var values []float64
	for _, result := range r.Results {
		if v, ok := result.Value(unit); ok {
			values = append(values, v)
		}
	}
	return benchmath.NewSample(values, &benchmath.DefaultThresholds)
}

// Median returns the median of one number, NaN where it was not measured.
func (r Row) Median(unit string) float64 {
	return summary(r.Sample(unit)).Center
}

// summary has the interval in which the median is with a confidence of 95 %; of fewer than six numbers
// it has the interval of all of them.
func summary(s *benchmath.Sample) benchmath.Summary {
	if len(s.Values) == 0 {
		return benchmath.Summary{Center: math.NaN()}
	}
	confidence := min(0.95, 1-math.Pow(2, float64(1-len(s.Values))))
	return benchmath.AssumeNothing.Summary(s, confidence)
}

// Show returns a number as a column shows it, a dash where it was not measured.
func (u Unit) Show(r Row) string {
	s := r.Sample(u.Name)
	of := summary(s)
	if u.Total {
		of.Center = 0
		for _, v := range s.Values {
			of.Center += v
		}
	}
	switch {
	case len(s.Values) == 0:
		return "–"
	case u.Ratio && of.Lo < of.Hi && len(s.Values) > 1:
		return fmt.Sprintf(u.Form+" ±%s", of.Center*u.Scale, of.PctRangeString())
	}
	return fmt.Sprintf(u.Form, of.Center*u.Scale)
}

// Show returns the number of a unit of [Units] as its column shows it.
func (r Row) Show(unit string) string {
	i := slices.IndexFunc(Units, func(u Unit) bool { return u.Name == unit })
	return Units[i].Show(r)
}

// Machine is the configuration of results that says where they were measured.
func Machine() []benchfmt.Config {
	return Configure("goos", runtime.GOOS, "goarch", runtime.GOARCH, "cores", strconv.Itoa(runtime.NumCPU()), "go", runtime.Version())
}

// Configure returns keys, each with its value, as the configuration of results. It leaves out those without a value.
func Configure(keysAndValues ...string) (config []benchfmt.Config) {
	for c := range slices.Chunk(keysAndValues, 2) {
		if c[1] != "" {
			config = append(config, benchfmt.Config{Key: c[0], Value: []byte(c[1]), File: true})
		}
	}
	return config
}

// Otherwise says by which settings, on which machine, and with which versions two results were measured otherwise, of
// what both have.
func Otherwise(before, after *benchfmt.Result) (settings, machine, versions []string) {
	for _, c := range before.Config {
		now := after.GetConfig(c.Key)
		if now == "" || now == string(c.Value) {
			continue
		}
		differs := fmt.Sprintf("%s %s, now %s", c.Key, c.Value, now)
		switch c.Key {
		case "go", "redis", "etcd", "mysql":
			versions = append(versions, differs)
		case "goos", "goarch", "cores":
			machine = append(machine, differs)
		default:
			settings = append(settings, differs)
		}
	}
	return settings, machine, versions
}

// Environment says where a result was measured.
func Environment(r *benchfmt.Result) string {
	servers := "Redis " + r.GetConfig("redis")
	if etcd := r.GetConfig("etcd"); etcd != "" {
		servers += ", etcd " + etcd
	}
	return fmt.Sprintf("%s, %s, %s/%s, %s cores", servers, r.GetConfig("go"), r.GetConfig("goos"), r.GetConfig("goarch"), r.GetConfig("cores"))
}

// Read reads a file in the Go benchmark format.
func Read(path string) ([]*benchfmt.Result, error) {
	var results []*benchfmt.Result
	files := benchfmt.Files{Paths: []string{path}}
	for files.Scan() {
		switch r := files.Result().(type) {
		case *benchfmt.Result:
			results = append(results, r.Clone())
		case *benchfmt.SyntaxError:
			return nil, r
		}
	}
	if err := files.Err(); err != nil {
		return nil, err
	}
	if len(results) == 0 {
		return nil, fmt.Errorf("%s has no results in the Go benchmark format", path)
	}
	return results, nil
}

// Write writes results in the Go benchmark format.
func Write(to io.Writer, results []*benchfmt.Result) error {
	w := benchfmt.NewWriter(to)
	for _, r := range results {
		if err := w.Write(r); err != nil {
			return err
		}
	}
	return nil
}
