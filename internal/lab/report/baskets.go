package report

import (
	"fmt"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"stocklock/internal/lab/basket"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/tabular"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/strategy"
)

// Baskets prints the ways of taking several items, their properties, and the scenarios.
func (t Terminal) Baskets(ways []strategy.Description) {
	t.heading("Ways of taking several items in one sale.")
	w := tabular.New()
	for _, s := range ways {
		w.AppendRow(table.Row{s.Name, s.Doc, s.Source})
	}
	t.print(w, table.Row{"way", "what it does", "source"}, []table.ColumnConfig{
		{Number: 2, WidthMax: 60, WidthMaxEnforcer: text.WrapSoft},
		{Number: 3, WidthMax: 36, WidthMaxEnforcer: text.WrapSoft},
	}, 3)
	t.standings("way", ways, strategy.BasketProperties(), func(s strategy.Description) strategy.Properties { return *s.Baskets })
	t.heading("Scenarios of baskets: each attacks one property.")
	w = tabular.New()
	for _, s := range basket.All {
		w.AppendRow(table.Row{s.Name, s.Doc, s.Attacks.String()})
	}
	t.print(w, table.Row{"scenario", "what happens", "attacks"}, []table.ColumnConfig{{Number: 2, WidthMax: 60, WidthMaxEnforcer: text.WrapSoft}}, 3)
}

// ExpectedBaskets prints the expected verdict of each wanted cell of several items.
func (t Terminal) ExpectedBaskets(ways []strategy.Description, wanted func(way, scenario string) bool) {
	var columns []scenario.Scenario
	for _, sc := range basket.All {
		if slices.ContainsFunc(ways, func(s strategy.Description) bool { return wanted(s.Name, sc.Name) }) {
			columns = append(columns, scenario.Scenario{Name: sc.Name})
		}
	}
	t.grid(ways, columns, func(s strategy.Description, column scenario.Scenario) string {
		sc, err := basket.ByName(column.Name)
		if err != nil || !wanted(s.Name, sc.Name) {
			return ""
		}
		expected := sc.Expected(s).Verdict
		return t.paint(verdict.Of(expected).Terminal, string(expected))
	})
}

// Stories prints what the customers met in each cell of several items that broke.
func (t Terminal) Stories(r Report) {
	for _, c := range r.Cells {
		if len(c.Story) == 0 || !verdict.Of(c.Verdict).Bad && !c.Surprise() {
			continue
		}
		t.heading(c.Name() + ": " + counted(c))
		t.story(c)
	}
}

// story prints what the customers of a few sales met.
func (t Terminal) story(c trial.Result) {
	for _, line := range c.Story {
		fmt.Fprintln(t.Out, "  "+line)
	}
}
