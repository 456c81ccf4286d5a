package report

import (
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"stocklock/internal/lab/tabular"
	"stocklock/internal/lab/topology"
	"stocklock/internal/strategy"
)

// Topologies prints the topologies of the database, what happens to each, and what strategies have against it.
func (t Terminal) Topologies(strategies []strategy.Description) {
	t.heading("Topologies of the database.")
	w := tabular.New()
	for _, of := range topology.All {
		survives, here := "no", "yes"
		if of.Durable {
			survives = "yes"
		}
		if of.Missing() != nil {
			here = "no"
		}
		w.AppendRow(table.Row{of.Name, of.Doc, survives, here})
	}
	t.print(w, table.Row{"topology", "its servers", "an answer survives its primary", "can start here"}, []table.ColumnConfig{
		{Number: 2, WidthMax: 60, WidthMaxEnforcer: text.WrapSoft},
		{Number: 3, WidthMax: 16, WidthMaxEnforcer: text.WrapSoft},
	}, 2)
	t.heading("Scenarios: what happens to the servers.")
	w = tabular.New()
	for _, of := range topology.Cases {
		w.AppendRow(table.Row{of.Name(), of.Scenario.Doc, of.Scenario.Attacks.String()})
	}
	t.print(w, table.Row{"scenario", "what happens", "attacks"}, []table.ColumnConfig{{Number: 2, WidthMax: 60, WidthMaxEnforcer: text.WrapSoft}}, 3)
	t.standings("strategy", strategies, strategy.TopologyProperties(), func(s strategy.Description) strategy.Properties { return strategy.Properties{Has: s.Servers} })
}
