package report

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"stocklock/internal/lab/tabular"
	"stocklock/internal/lab/trial"
)

// noise is how much a number must differ, as a part of what it was, to be pointed out.
const noise = 0.1

// Compare prints what changed between two reports, cell by cell. Cells under contention are
// compared by their numbers too; elsewhere the faults, and not the strategy, make the numbers.
func (t Terminal) Compare(before, after Report) {
	old := before.byPlace()
	w := tabular.New()
	changed, same, added := 0, 0, 0
	for _, c := range after.inOrder() {
		was, ok := old[placeOf(c)]
		delete(old, placeOf(c))
		contention := c.Comparable()
		switch {
		case !ok:
			added++
			w.AppendRow(table.Row{c.Strategy, c.Scenario, t.short(c) + ", new"})
			continue
		case was.Verdict != c.Verdict:
			changed++
		default:
			same++
			if !contention {
				continue
			}
		}
		row := table.Row{c.Strategy, c.Scenario, t.changedVerdict(was, c)}
		if contention && min(was.Requests, c.Requests) > 0 {
			row = append(row, t.change(was.SalesPerSecond, c.SalesPerSecond, true), t.change(was.Latency.P50, c.Latency.P50, false), t.change(was.Latency.P99, c.Latency.P99, false))
			if was.CostPerSale != nil && c.CostPerSale != nil {
				row = append(row, t.change(was.CostPerSale.Redis, c.CostPerSale.Redis, false), t.change(was.CostPerSale.Database, c.CostPerSale.Database, false))
			}
		}
		w.AppendRow(row)
	}
	for _, c := range before.inOrder() {
		if _, gone := old[placeOf(c)]; gone {
			w.AppendRow(table.Row{c.Strategy, c.Scenario, t.short(c) + ", gone"})
		}
	}
	if w.Length() > 0 {
		header := table.Row{"strategy", "scenario", "verdict", "sales/s", "p50 ms", "p99 ms", "Redis/sale", "database/sale"}
		w.SuppressEmptyColumns()
		t.print(w, header, tabular.Right(4, 8), 8, 7, 5, 6, 4)
	}
	fmt.Fprintf(t.Out, "%s with another verdict, %d with the same, %d only after, %d only before\n", plural(changed, "cell"), same, added, len(old))
	if differ := differences(before, after); len(differ) > 0 {
		fmt.Fprintf(t.Out, "not the same, so numbers are not to be compared: %s\n", strings.Join(differ, "; "))
	}
	if before.Environment.Testbeds == after.Environment.Testbeds { // else it is among the differences
		t.sideBySide(after.Environment)
	}
	for _, r := range []struct {
		Report
		which string
	}{{before, "before"}, {after, "after"}} {
		if r.Interrupted {
			fmt.Fprintf(t.Out, "%s was interrupted: cells are missing\n", r.which)
		}
	}
}

func (t Terminal) changedVerdict(was, is trial.Result) string {
	if was.Verdict == is.Verdict {
		return t.short(is)
	}
	return t.short(was) + " → " + t.short(is)
}

// change is a number and how it differs from what it was, coloured where that is more than noise.
func (t Terminal) change(was, is float64, moreIsBetter bool) string {
	if was == 0 {
		return short(is)
	}
	part := (is - was) / was
	said := fmt.Sprintf("%s (%+.0f%%)", short(is), 100*part)
	switch {
	case part > -noise && part < noise:
		return said
	case part > 0 == moreIsBetter:
		return t.paint(text.Colors{text.FgGreen}, said)
	default:
		return t.paint(text.Colors{text.FgHiRed}, said)
	}
}
