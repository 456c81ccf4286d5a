package report

import (
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/tabular"
	"stocklock/internal/lab/topology"
	"stocklock/internal/lab/trial"
	"stocklock/internal/strategy/declared"
)

// Strategies prints what each strategy does.
func (t Terminal) Strategies(all []declared.Strategy) {
	t.heading("Strategies: a guard decides who may enter, a decrement how the stock is written.")
	w := tabular.New()
	for _, s := range all {
		w.AppendRow(table.Row{s.Name, s.Doc, s.Guard, s.Decrement})
	}
	t.print(w, table.Row{"strategy", "what it does", "guard", "decrement"}, []table.ColumnConfig{wrapped(2, 48), wrapped(3, 24), wrapped(4, 24)}, 4, 3)
}

// Scenarios prints what each scenario does.
func (t Terminal) Scenarios() {
	t.scenarios("Scenarios: each attacks one property.", scenario.Of(trial.OneServer))
}

func (t Terminal) scenarios(heading string, all []trial.Scenario) {
	t.heading(heading)
	w := tabular.New()
	for _, s := range all {
		w.AppendRow(table.Row{s.Name, s.Doc, s.Attacks})
	}
	t.print(w, table.Row{"scenario", "what happens", "attacks"}, []table.ColumnConfig{wrapped(2, 60)}, 3)
}

// Baskets prints the ways of taking several items, their properties, and the scenarios.
func (t Terminal) Baskets(ways []declared.Strategy) {
	t.ways("Ways of taking several items in one sale.", trial.Baskets, ways, declared.BasketProperties(), func(s declared.Strategy) declared.Properties { return *s.Baskets })
}

// Reservations prints the ways of reserving, their properties, and the scenarios.
func (t Terminal) Reservations(ways []declared.Strategy) {
	t.ways("Ways of reserving units for a payment.", trial.Reservations, ways, declared.ReservationProperties(), func(s declared.Strategy) declared.Properties { return *s.Reservations })
}

func (t Terminal) ways(heading, group string, ways []declared.Strategy, properties []declared.Property, of func(declared.Strategy) declared.Properties) {
	t.heading(heading)
	w := tabular.New()
	for _, s := range ways {
		w.AppendRow(table.Row{s.Name, s.Doc, s.Source})
	}
	t.print(w, table.Row{"way", "what it does", "source"}, []table.ColumnConfig{wrapped(2, 60), wrapped(3, 36)}, 3)
	t.standings("way", ways, properties, of)
	t.scenarios("Scenarios of "+group+": each attacks one property.", scenario.Of(group))
}

// wrapped is a column of at most so many characters.
func wrapped(number, width int) table.ColumnConfig {
	return table.ColumnConfig{Number: number, WidthMax: width, WidthMaxEnforcer: text.WrapSoft}
}

// Topologies prints the topologies of the database, what happens to each, and what strategies have against it.
func (t Terminal) Topologies(strategies []declared.Strategy) {
	t.heading("Topologies of the database.")
	w, is := tabular.New(), map[bool]string{true: "yes", false: "no"}
	for _, of := range topology.All {
		w.AppendRow(table.Row{of.Name, of.Doc, is[of.Durable], is[of.Missing() == nil]})
	}
	t.print(w, table.Row{"topology", "its servers", "an answer survives its primary", "can start here"}, []table.ColumnConfig{wrapped(2, 60), wrapped(3, 16)}, 2)
	t.scenarios("Scenarios: what happens to the servers.", scenario.OfTopologies())
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
