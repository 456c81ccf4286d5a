package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/tabular"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/strategy/declared"
)

// Terminal prints reports as text.
type Terminal struct {
	Out    io.Writer
	Colour bool
	Width  int // of a line, in columns; 0 for what is no terminal
}

// usualWidth fits the terminals that most people have, behind the prefix that Compose gives a line.
const usualWidth = 100

func (t Terminal) width() int { return cmp.Or(t.Width, usualWidth) }

// Report prints the comparison under contention, the matrix where there is one, or else single
// cells. Surprises come last.
func (t Terminal) Report(r Report) {
	switch {
	case len(cellsThat(trial.Result.Comparable, r.Cells)) == len(r.Cells):
		t.comparison(r.Cells)
		t.sideBySide(r.Environment)
		t.loads(r)
	case r.isMatrix():
		t.matrix(r)
	default:
		t.singly(r)
	}
	t.closing(r)
}

func (t Terminal) comparison(cells []trial.Result) {
	shown := metricsIn(inTerminal, cells)
	w, header := tabular.New(), table.Row{"strategy"}
	for _, m := range shown {
		header = append(header, m.title)
	}
	for _, c := range cells {
		row := table.Row{c.Strategy}
		for _, m := range shown {
			row = append(row, m.text(c, whole))
		}
		w.AppendRow(append(row, t.verdict(c, word(c))))
	}
	t.print(w, append(header, "verdict"), tabular.Right(2, len(shown)+1), leaveFirst(shown, 1)...)
	if slices.ContainsFunc(cells, func(c trial.Result) bool { return c.Runs > 1 && !c.Surprise() }) {
		t.wrapped("Of several runs, the numbers are those of the one with the median of sales per second.")
	}
}

func (t Terminal) sideBySide(e Environment) {
	if note := e.sideBySide(); note != "" {
		t.wrapped(note)
	}
}

// singly prints each cell with its scenario and the property that decides.
func (t Terminal) singly(r Report) {
	w := tabular.New()
	for _, c := range slices.SortedStableFunc(slices.Values(r.Cells), r.byStrategy) {
		w.AppendRow(table.Row{c.Name(), done(c), c.Because, t.verdict(c, strings.TrimSpace(counted(c)+" "+c.Promise()))})
	}
	t.print(w, table.Row{"cell", "what is done to it", "because", "verdict"},
		[]table.ColumnConfig{{Number: 2, WidthMax: 48, WidthMaxEnforcer: text.WrapSoft}}, 2, 3)
}

// done says in one line what a scenario does, empty of one that is not known.
func done(c trial.Result) string {
	sc, _ := scenario.ByName(c.Scenario)
	return sc.Doc
}

func (t Terminal) matrix(r Report) {
	t.table(r, t.short)
	t.wrapped(legendOf(r.Cells))
}

// Expected prints the expected verdict of each cell.
func (t Terminal) Expected(r Report) {
	t.table(r, func(c trial.Result) string { return t.paint(verdict.Of(c.Expected).Terminal, string(c.Expected)) })
}

// table prints strategies by scenarios, with what is to be shown of each cell.
func (t Terminal) table(r Report, shown func(trial.Result) string) {
	cells := r.byPlace()
	strategies, scenarios := r.Places(r.Cells)
	t.grid(strategies, scenarios, func(s declared.Strategy, sc trial.Scenario) string {
		c, ok := cells[place{s.Name, sc.Name}]
		if !ok {
			return ""
		}
		return shown(c)
	})
}

// legendOf explains the words of a matrix that it has.
func legendOf(cells []trial.Result) string {
	var said []string
	only := ""
	if !slices.ContainsFunc(cells, func(c trial.Result) bool { return c.Group != cells[0].Group }) {
		only = heldOf[cells[0].Group]
	}
	for _, v := range legend(cells) {
		if v.Kind == verdict.Held && only != "" {
			said = append(said, "held: "+only)
			continue
		}
		said = append(said, v.Legend())
	}
	if slices.ContainsFunc(cells, func(c trial.Result) bool { return c.Promise() != "" }) {
		said = append(said, "N/M: N units promised, in orders and in answers as sold, of M")
	}
	if slices.ContainsFunc(cells, trial.Result.Surprise) {
		said = append(said, "!! a surprise")
	}
	return strings.Join(said, " · ")
}

// verdictOf returns the text of a cell in a grid.
type verdictOf func(declared.Strategy, trial.Scenario) string

// grid prints strategies by scenarios. Columns without room are printed as a second table below.
func (t Terminal) grid(strategies []declared.Strategy, scenarios []trial.Scenario, cell verdictOf) {
	shown := len(scenarios)
	grid := gridOf(strategies, scenarios, cell)
	for shown > 1 && !t.fits(grid) {
		shown--
		grid = gridOf(strategies, scenarios[:shown], cell)
	}
	fmt.Fprintln(t.Out, grid)
	if shown < len(scenarios) {
		fmt.Fprintln(t.Out)
		t.grid(strategies, scenarios[shown:], cell)
	}
}

func gridOf(strategies []declared.Strategy, scenarios []trial.Scenario, cell verdictOf) string {
	w := tabular.New()
	header := table.Row{"strategy"}
	for _, sc := range scenarios {
		header = append(header, strings.ReplaceAll(sc.Name, "-", "-\n"))
	}
	w.AppendHeader(header)
	for _, s := range strategies {
		row := table.Row{s.Name}
		for _, sc := range scenarios {
			row = append(row, cell(s, sc))
		}
		w.AppendRow(row)
	}
	return rendered(w)
}

// wrapped prints a line of text, broken where the terminal ends.
func (t Terminal) wrapped(s string) {
	for _, line := range strings.Split(text.WrapSoft(s, t.width()), "\n") {
		fmt.Fprintln(t.Out, strings.TrimSpace(line))
	}
}

func (t Terminal) paint(c text.Colors, s string) string {
	if !t.Colour || len(c) == 0 {
		return s
	}
	return c.EscapeSeq() + s + text.EscapeReset
}
