package report

import (
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"stocklock/internal/lab/basket"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/tabular"
	"stocklock/internal/lab/topology"
	"stocklock/internal/strategy/declared"
)

// Strategies prints what each strategy does.
func (t Terminal) Strategies(all []declared.Strategy) {
	t.heading("Strategies: a guard decides who may enter, a decrement how the stock is written.")
	w := tabular.New()
	for _, s := range all {
		w.AppendRow(table.Row{s.Name, s.Doc, s.Guard, s.Decrement})
	}
	t.print(w, table.Row{"strategy", "what it does", "guard", "decrement"}, []table.ColumnConfig{
		{Number: 2, WidthMax: 48, WidthMaxEnforcer: text.WrapSoft},
		{Number: 3, WidthMax: 24, WidthMaxEnforcer: text.WrapSoft},
		{Number: 4, WidthMax: 24, WidthMaxEnforcer: text.WrapSoft},
	}, 4, 3)
}

// Scenarios prints what each scenario does.
func (t Terminal) Scenarios() {
	var rows []table.Row
	for _, s := range scenario.All() {
		rows = append(rows, table.Row{s.Name, s.Doc, s.Attacks})
	}
	t.scenarios("Scenarios: each attacks one property.", rows)
}

func (t Terminal) scenarios(heading string, rows []table.Row) {
	t.heading(heading)
	w := tabular.New()
	w.AppendRows(rows)
	t.print(w, table.Row{"scenario", "what happens", "attacks"}, []table.ColumnConfig{{Number: 2, WidthMax: 60, WidthMaxEnforcer: text.WrapSoft}}, 3)
}

// Baskets prints the ways of taking several items, their properties, and the scenarios.
func (t Terminal) Baskets(ways []declared.Strategy) {
	t.heading("Ways of taking several items in one sale.")
	w := tabular.New()
	for _, s := range ways {
		w.AppendRow(table.Row{s.Name, s.Doc, s.Source})
	}
	t.print(w, table.Row{"way", "what it does", "source"}, []table.ColumnConfig{
		{Number: 2, WidthMax: 60, WidthMaxEnforcer: text.WrapSoft},
		{Number: 3, WidthMax: 36, WidthMaxEnforcer: text.WrapSoft},
	}, 3)
	t.standings("way", ways, declared.BasketProperties(), func(s declared.Strategy) declared.Properties { return *s.Baskets })
	var rows []table.Row
	for _, s := range basket.All {
		rows = append(rows, table.Row{s.Name, s.Doc, s.Attacks})
	}
	t.scenarios("Scenarios of baskets: each attacks one property.", rows)
}

// Topologies prints the topologies of the database, what happens to each, and what strategies have against it.
func (t Terminal) Topologies(strategies []declared.Strategy) {
	t.heading("Topologies of the database.")
	w, is := tabular.New(), map[bool]string{true: "yes", false: "no"}
	for _, of := range topology.All {
		w.AppendRow(table.Row{of.Name, of.Doc, is[of.Durable], is[of.Missing() == nil]})
	}
	t.print(w, table.Row{"topology", "its servers", "an answer survives its primary", "can start here"}, []table.ColumnConfig{
		{Number: 2, WidthMax: 60, WidthMaxEnforcer: text.WrapSoft},
		{Number: 3, WidthMax: 16, WidthMaxEnforcer: text.WrapSoft},
	}, 2)
	var rows []table.Row
	for _, of := range topology.Cases {
		rows = append(rows, table.Row{of.Name(), of.Scenario.Doc, of.Scenario.Attacks})
	}
	t.scenarios("Scenarios: what happens to the servers.", rows)
	t.standings("strategy", strategies, declared.TopologyProperties(), func(s declared.Strategy) declared.Properties { return declared.Properties{Has: s.Servers} })
}

// Properties prints which strategy has which property.
func (t Terminal) Properties(all []declared.Strategy) {
	t.standings("strategy", all, declared.AllProperties(), func(s declared.Strategy) declared.Properties { return s.Properties })
}

func (t Terminal) standings(what string, all []declared.Strategy, properties []declared.Property, of func(declared.Strategy) declared.Properties) {
	t.heading("Properties, by effect: ✓ has it, · lacks it, – it does not apply.")
	w := tabular.New()
	header := table.Row{what}
	for i := range properties {
		header = append(header, string(rune('A'+i)))
	}
	for _, s := range all {
		row := table.Row{s.Name}
		for _, p := range properties {
			mark := "·"
			switch of(s).Standing(p) {
			case declared.Has:
				mark = t.paint(text.Colors{text.FgGreen}, "✓")
			case declared.NotApplicable:
				mark = "–"
			}
			row = append(row, mark)
		}
		w.AppendRow(row)
	}
	t.print(w, header, nil)
	for i, p := range properties {
		fmt.Fprintf(t.Out, "  %c  %-18s %s\n", 'A'+i, p, p.Doc())
	}
}

func (t Terminal) heading(s string) {
	fmt.Fprintf(t.Out, "\n%s\n\n", t.paint(text.Colors{text.Bold}, s))
}
