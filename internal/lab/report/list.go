package report

import (
	"fmt"
	"regexp"
	"strings"

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
	t.heading(t.say("list.strategies"))
	w := tabular.New()
	for _, s := range all {
		w.AppendRow(table.Row{s.Name, t.doc("strategy", s.Name, s.Doc), s.Guard, s.Decrement})
	}
	t.print(w, t.Header("strategy", "list.does", "guard", "decrement"), []table.ColumnConfig{wrapped(2, 48), wrapped(3, 24), wrapped(4, 24)}, 4, 3)
}

// Scenarios prints what each scenario does.
func (t Terminal) Scenarios() {
	t.scenarios(t.say("list.scenarios"), scenario.Of(trial.OneServer))
}

func (t Terminal) scenarios(heading string, all []trial.Scenario) {
	t.heading(heading)
	w := tabular.New()
	for _, s := range all {
		w.AppendRow(table.Row{s.Name, t.doc("scenario", s.Name, s.Doc), s.Attacks})
	}
	t.print(w, t.Header("list.scenario", "list.happens", "attacks"), []table.ColumnConfig{wrapped(2, 60)}, 3)
}

// Baskets prints the ways of taking several items, their properties, and the scenarios.
func (t Terminal) Baskets(ways []declared.Strategy) {
	t.ways(t.say("list.baskets"), trial.Baskets, ways, declared.BasketProperties(), func(s declared.Strategy) declared.Properties { return *s.Baskets })
}

// Reservations prints the ways of reserving, their properties, and the scenarios.
func (t Terminal) Reservations(ways []declared.Strategy) {
	t.ways(t.say("list.reservations"), trial.Reservations, ways, declared.ReservationProperties(), func(s declared.Strategy) declared.Properties { return *s.Reservations })
}

func (t Terminal) ways(heading, group string, ways []declared.Strategy, properties []declared.Property, of func(declared.Strategy) declared.Properties) {
	t.heading(heading)
	w := tabular.New()
	for _, s := range ways {
		w.AppendRow(table.Row{s.Name, t.doc("strategy", s.Name, s.Doc), s.Source})
	}
	t.print(w, t.Header("list.way", "list.does", "list.source"), []table.ColumnConfig{wrapped(2, 60), wrapped(3, 36)}, 3)
	t.standings(t.say("list.way"), ways, properties, of)
	t.scenarios(t.say("list.of-group", "group", group), scenario.Of(group))
}

// wrapped is a column of at most so many characters.
func wrapped(number, width int) table.ColumnConfig {
	return table.ColumnConfig{Number: number, WidthMax: width, WidthMaxEnforcer: soft}
}

// unbroken is what stays in one line: a word or a Chinese character, with the marks that stand before and after it.
var unbroken = regexp.MustCompile(`[（“]*(?:\p{Han}|[^\s\p{Han}（“，。：；、）”？！]+|)[，。：；、）”？！]*\s*`)

// soft is a text in lines of at most so many columns. text.WrapSoft takes what is between two spaces for a word, which
// in Chinese is a clause.
func soft(s string, width int) string {
	var lines []string
	line := ""
	for _, next := range unbroken.FindAllString(s, -1) {
		if text.StringWidth(strings.TrimSpace(line+next)) > width && line != "" {
			lines, line = append(lines, text.WrapHard(strings.TrimSpace(line), width)), ""
		}
		line += next
	}
	return strings.Join(append(lines, text.WrapHard(strings.TrimSpace(line), width)), "\n")
}

// Topologies prints the topologies of the database, what happens to each, and what strategies have against it.
func (t Terminal) Topologies(strategies []declared.Strategy) {
	t.heading(t.say("list.topologies"))
	w, is := tabular.New(), map[bool]string{true: t.say("report.yes"), false: t.say("report.no")}
	for _, of := range topology.All {
		w.AppendRow(table.Row{of.Name, t.doc("topology", of.Name, of.Doc), is[of.Durable], is[of.Missing() == nil]})
	}
	t.print(w, t.Header("list.topology", "list.servers", "list.durable", "list.here"), []table.ColumnConfig{wrapped(2, 60), wrapped(3, 16)}, 2)
	t.scenarios(t.say("list.of-topologies"), scenario.OfTopologies())
	t.standings(t.say("strategy"), strategies, declared.TopologyProperties(), func(s declared.Strategy) declared.Properties { return declared.Properties{Has: s.Servers} })
}

// Properties prints which strategy has which property.
func (t Terminal) Properties(all []declared.Strategy) {
	t.standings(t.say("strategy"), all, declared.AllProperties(), func(s declared.Strategy) declared.Properties { return s.Properties })
}

func (t Terminal) standings(what string, all []declared.Strategy, properties []declared.Property, of func(declared.Strategy) declared.Properties) {
	t.heading(t.say("list.properties"))
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
		fmt.Fprintf(t.Out, "  %c  %-18s %s\n", 'A'+i, p, t.doc("property", p.String(), p.Doc()))
	}
}

// doc is what the code says of a name in English, and the catalogue in other languages.
func (t Terminal) doc(kind, name, english string) string { return t.in().Or(kind+"."+name, english) }

func (t Terminal) heading(s string) {
	fmt.Fprintf(t.Out, "\n%s\n\n", t.paint(text.Colors{text.Bold}, s))
}
