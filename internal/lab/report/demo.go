package report

import (
	"fmt"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"

	"stocklock/internal/lab/tabular"
	"stocklock/internal/lab/trial"
)

// Demo prints a comparison and the cells of a second report that broke, and then what both came to.
// It fits on one screen.
func (t Terminal) Demo(compared, telling Report) {
	t.heading("While nothing goes wrong:")
	t.comparison(compared.Cells)
	broken := slices.DeleteFunc(slices.Clone(telling.Cells), func(c trial.Result) bool { return !broke(c) })
	if len(broken) > 0 {
		t.heading("Each strategy where it shows most: these broke.")
		w := tabular.New()
		slices.SortStableFunc(broken, telling.byStrategy)
		for _, c := range broken {
			w.AppendRow(table.Row{c.Name(), c.Because, t.verdict(c, counted(c))})
		}
		t.print(w, table.Row{"cell", "because", "verdict"}, nil, 2)
	}
	fmt.Fprintln(t.Out)
	if held := wouldHaveHeldInAll(broken); held != "" {
		fmt.Fprintln(t.Out, held)
	}
	t.closing(Joined(compared, telling))
}

// wouldHaveHeldInAll names strategies whose properties hold wherever one of the cells broke.
func wouldHaveHeldInAll(broken []trial.Result) string {
	held := ""
	for i, c := range broken {
		one := wouldHaveHeld(c)
		if i > 0 && one != held {
			return ""
		}
		held = one
	}
	return held
}
