package report

import (
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"stocklock/internal/lab/basket"
	"stocklock/internal/lab/tabular"
	"stocklock/internal/lab/trial"
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

// story prints what the customers of a few sales met.
func (t Terminal) story(c trial.Result) {
	for _, line := range c.Story {
		fmt.Fprintln(t.Out, "  "+line)
	}
}
