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
	"stocklock/internal/lab/words"
	"stocklock/internal/strategy/declared"
)

// Terminal prints reports as text.
type Terminal struct {
	Out    io.Writer
	Colour bool
	Width  int // of a line, in columns; 0 for what is no terminal
	// Lang is the language of what is said, nil for English. Names stay as they are written in a command.
	Lang *words.Language
}

func (t Terminal) in() *words.Language { return cmp.Or(t.Lang, words.English) }

func (t Terminal) say(key string, facts ...any) string { return t.in().Say(words.Of(key, facts...)) }

// Header is a row of titles, by their keys.
func (t Terminal) Header(keys ...string) (header table.Row) {
	for _, key := range keys {
		header = append(header, t.say(key))
	}
	return header
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
		t.table(r, t.short)
		t.wrapped(t.legend(r.Cells))
	default:
		t.singly(r)
	}
	t.closing(r)
}

func (t Terminal) comparison(cells []trial.Result) {
	shown := metricsIn(inTerminal, cells)
	w, header := tabular.New(), t.Header("strategy")
	for _, m := range shown {
		header = append(header, broken(m.title(t.in())))
	}
	for _, c := range cells {
		row := table.Row{c.Strategy}
		for _, m := range shown {
			row = append(row, m.text(c, whole))
		}
		w.AppendRow(append(row, t.verdict(c, word(t.in(), c))))
	}
	t.print(w, append(header, t.say("verdict")), tabular.Right(2, len(shown)+1), leaveFirst(shown, 1)...)
	if slices.ContainsFunc(cells, func(c trial.Result) bool { return c.Runs > 1 && !c.Surprise() }) {
		t.wrapped(t.say("report.median"))
	}
}

// sideBySide warns of numbers that were measured while other cells ran.
func (t Terminal) sideBySide(e Environment) {
	if e.Testbeds > 1 {
		t.wrapped(t.say("load.beside", "n", e.Testbeds))
	}
}

// singly prints each cell with its scenario and the property that decides.
func (t Terminal) singly(r Report) {
	w := tabular.New()
	for _, c := range slices.SortedStableFunc(slices.Values(r.Cells), r.byStrategy) {
		w.AppendRow(table.Row{c.Name(), t.done(c), t.in().Say(c.Because.Short()), t.verdict(c, strings.TrimSpace(counted(t.in(), c)+" "+c.Promise()))})
	}
	t.print(w, t.Header("report.cell", "report.done", "report.because", "verdict"),
		[]table.ColumnConfig{wrapped(2, 48)}, 2, 3)
}

// done says in one line what a scenario does, empty of one that is not known.
func (t Terminal) done(c trial.Result) string {
	sc, _ := scenario.ByName(c.Scenario)
	return t.doc("scenario", sc.Name, sc.Doc)
}

// Expected prints the expected verdict of each cell.
func (t Terminal) Expected(r Report) {
	t.table(r, func(c trial.Result) string {
		return t.paint(verdict.Of(c.Expected).Terminal, verdict.Of(c.Expected).Word(t.in()))
	})
}

// table prints strategies by scenarios, with what is to be shown of each cell. Columns without room are printed as a
// second table below.
func (t Terminal) table(r Report, shown func(trial.Result) string) {
	cells := r.byName()
	strategies, scenarios := r.Places(r.Cells)
	for {
		n := len(scenarios)
		grid := t.grid(cells, strategies, scenarios, shown)
		for n > 1 && !t.fits(grid) {
			n--
			grid = t.grid(cells, strategies, scenarios[:n], shown)
		}
		fmt.Fprintln(t.Out, grid)
		if scenarios = scenarios[n:]; len(scenarios) == 0 {
			return
		}
		fmt.Fprintln(t.Out)
	}
}

func (t Terminal) grid(cells map[string]trial.Result, strategies []declared.Strategy, scenarios []trial.Scenario, shown func(trial.Result) string) string {
	w, header := tabular.New(), t.Header("strategy")
	for _, sc := range scenarios {
		header = append(header, strings.ReplaceAll(sc.Name, "-", "-\n"))
	}
	w.AppendHeader(header)
	for _, s := range strategies {
		row := table.Row{s.Name}
		for _, sc := range scenarios {
			text := ""
			if c, ok := cells[s.Name+":"+sc.Name]; ok {
				text = shown(c)
			}
			row = append(row, text)
		}
		w.AppendRow(row)
	}
	return rendered(w)
}

// legend explains the words of a matrix that it has.
func (t Terminal) legend(cells []trial.Result) string {
	var said []string
	group := cells[0].Group
	if slices.ContainsFunc(cells, func(c trial.Result) bool { return c.Group != group }) {
		group = trial.OneServer
	}
	for _, v := range verdictsOf(cells) {
		said = append(said, v.Legend(t.in(), group))
	}
	if slices.ContainsFunc(cells, func(c trial.Result) bool { return c.Promise() != "" }) {
		said = append(said, t.say("report.promise"))
	}
	if slices.ContainsFunc(cells, trial.Result.Surprise) {
		said = append(said, t.say("report.surprise"))
	}
	return strings.Join(said, " · ")
}

// wrapped prints a line of text, broken where the terminal ends.
func (t Terminal) wrapped(s string) {
	for _, line := range strings.Split(soft(s, t.width()), "\n") {
		fmt.Fprintln(t.Out, strings.TrimSpace(line))
	}
}

func (t Terminal) paint(c text.Colors, s string) string {
	if !t.Colour || len(c) == 0 {
		return s
	}
	return c.EscapeSeq() + s + text.EscapeReset
}
