package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"stocklock/internal/lab/drawing"
	"stocklock/internal/lab/tabular"
	"stocklock/internal/lab/trial"
)

// noise is the relative difference below which a number counts as unchanged.
const noise = 0.1

// Compare prints what changed between two reports, cell by cell. Numbers are compared under
// contention only: in other scenarios they follow from the faults, and not from the strategy.
func (t Terminal) Compare(before, after Report) {
	old := before.byName()
	w := tabular.New()
	shown := metricsIn(inComparing, slices.Concat(before.Cells, after.Cells))
	changed, same, added := 0, 0, 0
	for _, c := range after.InOrder() {
		was, ok := old[c.Name()]
		delete(old, c.Name())
		contention := c.Comparable()
		switch {
		case !ok:
			added++
			w.AppendRow(table.Row{c.Strategy, c.Scenario, t.say("compare.new", "verdict", t.short(c))})
			continue
		case was.Shown().Kind != c.Shown().Kind:
			changed++
		default:
			same++
			if !contention {
				continue
			}
		}
		row := table.Row{c.Strategy, c.Scenario, t.changedVerdict(was, c)}
		if contention {
			for _, m := range shown {
				row = append(row, t.change(m, was, c))
			}
		}
		w.AppendRow(row)
	}
	for _, c := range before.InOrder() {
		if _, gone := old[c.Name()]; gone {
			w.AppendRow(table.Row{c.Strategy, c.Scenario, t.say("compare.gone", "verdict", t.short(c))})
		}
	}
	if w.Length() > 0 {
		header := t.Header("strategy", "list.scenario", "verdict")
		for _, m := range shown {
			header = append(header, m.title(t.in()))
		}
		w.SuppressEmptyColumns()
		t.print(w, header, tabular.Right(4, 3+len(shown)), leaveFirst(shown, 3)...)
	}
	t.wrapped(t.say("compare.cells", "changed", changed, "same", same, "added", added, "gone", len(old)))
	if differ := differences(t.in(), before, after); len(differ) > 0 {
		t.wrapped(t.say("compare.differ", "what", strings.Join(differ, "; ")))
	}
	if before.Environment.Testbeds == after.Environment.Testbeds { // else it is among the differences
		t.sideBySide(after.Environment)
	}
	if before.Interrupted {
		t.wrapped(t.say("compare.interrupted.before"))
	}
	if after.Interrupted {
		t.wrapped(t.say("compare.interrupted.after"))
	}
}

func (t Terminal) changedVerdict(was, is trial.Result) string {
	if was.Shown().Kind == is.Shown().Kind {
		return t.short(is)
	}
	return t.short(was) + " → " + t.short(is)
}

// change is a metric with its relative change, coloured where that is more than noise.
func (t Terminal) change(m metric, before, after trial.Result) string {
	was, known := m.value(before)
	is, measured := m.value(after)
	switch {
	case !known && !measured:
		return ""
	case !measured:
		return dash
	case !known || was == 0:
		return drawing.Short(is)
	}
	part := (is - was) / was
	said := fmt.Sprintf("%s (%+.0f%%)", drawing.Short(is), 100*part)
	switch {
	case part > -noise && part < noise || m.better == neither:
		return said
	case part > 0 == (m.better == more):
		return t.paint(text.Colors{text.FgGreen}, said)
	default:
		return t.paint(surprising, said)
	}
}
