package report

import (
	"fmt"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"

	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/tabular"
	"stocklock/internal/lab/trial"
)

// Demo prints a comparison and the cells of a second report that broke, and then what both came to.
// It fits on one screen.
func (t Terminal) Demo(compared, telling Report) {
	t.heading("While nothing goes wrong:")
	t.comparison(compared.Cells)
	broke := slices.DeleteFunc(slices.Clone(telling.Cells), func(c trial.Result) bool {
		return !c.Surprise() && (c.Verdict == scenario.Held || c.Verdict == scenario.Skipped)
	})
	if len(broke) > 0 {
		t.heading("Each strategy where it shows most: these broke.")
		w := tabular.New()
		for _, c := range broke {
			w.AppendRow(table.Row{c.Strategy, c.Scenario, c.Because, t.verdict(c, counted(c))})
		}
		t.print(w, table.Row{"strategy", "scenario", "because", "verdict"}, nil, 3)
	}
	both := compared
	both.Cells = slices.Concat(compared.Cells, telling.Cells)
	both.Interrupted = compared.Interrupted || telling.Interrupted
	verdicts := map[scenario.Kind]int{}
	for _, c := range both.Cells {
		verdicts[c.Verdict]++
	}
	fmt.Fprintf(t.Out, "\n%d oversold, %d were stuck, %d held.\n",
		verdicts[scenario.Oversold], verdicts[scenario.Stuck], verdicts[scenario.Held])
	t.closing(both)
}
