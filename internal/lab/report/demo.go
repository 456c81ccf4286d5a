package report

import (
	"fmt"
	"slices"
	"strings"

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
		slices.SortStableFunc(broke, telling.byStrategy)
		for _, c := range broke {
			w.AppendRow(table.Row{c.Strategy, c.Scenario, c.Because, t.verdict(c, counted(c))})
		}
		t.print(w, table.Row{"strategy", "scenario", "because", "verdict"}, nil, 3)
	}
	both := Joined(compared, telling)
	counts := map[scenario.Kind]int{}
	for _, c := range both.Cells {
		counts[c.Verdict]++
	}
	var words []string
	for _, kind := range []scenario.Kind{scenario.Oversold, scenario.Lied, scenario.Left, scenario.Stuck, scenario.Held} {
		if counts[kind] > 0 {
			words = append(words, fmt.Sprintf("%d %s", counts[kind], kind))
		}
	}
	fmt.Fprintf(t.Out, "\n%s\n", strings.Join(words, ", "))
	t.closing(both)
}
