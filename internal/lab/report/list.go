package report

import (
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/tabular"
	"stocklock/internal/strategy"
)

// Strategies prints what each strategy does.
func (t Terminal) Strategies(all []strategy.Description) {
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
	t.heading("Scenarios: each attacks one property.")
	w := tabular.New()
	for _, s := range scenario.All() {
		w.AppendRow(table.Row{s.Name, s.Doc, s.Attacks.String()})
	}
	t.print(w, table.Row{"scenario", "what it does", "attacks"}, []table.ColumnConfig{{Number: 2, WidthMax: 60, WidthMaxEnforcer: text.WrapSoft}}, 3)
}

// Properties prints which strategy has which property.
func (t Terminal) Properties(all []strategy.Description) {
	t.standings("strategy", all, strategy.AllProperties(), func(s strategy.Description) strategy.Properties { return s.Properties })
}

func (t Terminal) standings(what string, all []strategy.Description, properties []strategy.Property, of func(strategy.Description) strategy.Properties) {
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
			case strategy.Has:
				mark = t.paint(text.Colors{text.FgGreen}, "✓")
			case strategy.NotApplicable:
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
