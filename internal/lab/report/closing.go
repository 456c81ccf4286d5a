package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"stocklock/internal/lab/tabular"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
)

// closing prints what is to be said under a table, and last what the run came to.
func (t Terminal) closing(r Report) {
	for _, c := range r.Surprises() {
		ended := t.say("report.expected", "word", verdict.Of(c.Verdict).Word(t.in()), "expected", c.Expected)
		t.wrapped(fmt.Sprintf("%s %s: %s", t.paint(surprising, t.say("report.surprised")), c.Name(), ended))
		if why := reason(t.in(), c); why != "" {
			fmt.Fprintf(t.Out, "  %s\n", strings.ReplaceAll(why, "\n", "\n  "))
		}
		fmt.Fprintln(t.Out, "  "+t.again(c, t.drawingWidth()-2))
	}
	for _, c := range r.Cells {
		if c.Degraded() {
			t.wrapped(fmt.Sprintf("%s: %s: %s", word(t.in(), c), c.Name(), reason(t.in(), c)))
		}
	}
	for _, line := range skipped(r.Cells) {
		t.wrapped(t.in().Say(line))
	}
	if r.Interrupted {
		fmt.Fprintln(t.Out, t.say("report.interrupted"))
	}
	t.wrapped(fmt.Sprintf("%s · %s", r.title(t.in()), r.Environment.short(t.in())))
}

// skipped has a line for each problem for which cells were skipped. It names the strategies or the
// scenarios that cannot run here.
func skipped(cells []trial.Result) []words.Text {
	names := map[string][]string{} // by problem
	var problems []words.Text
	for _, c := range cells {
		if c.Verdict != verdict.Skipped {
			continue
		}
		name := c.Name()
		switch c.Unfit {
		case trial.UnfitStrategy:
			name = c.Strategy
		case trial.UnfitScenario:
			name = c.Scenario
		}
		problem := c.Why().String()
		if names[problem] == nil {
			problems = append(problems, c.Why())
		}
		if !slices.Contains(names[problem], name) {
			names[problem] = append(names[problem], name)
		}
	}
	var lines []words.Text
	for _, problem := range problems {
		lines = append(lines, words.Of("report.skipped", "names", strings.Join(names[problem.String()], ", "), "problem", problem))
	}
	return lines
}

// title is the result in one line: how many cells ended how, and whether that was predicted.
func (r Report) title(in *words.Language) string {
	say := func(key string, facts ...any) string { return in.Say(words.Of(key, facts...)) }
	if len(r.Cells) == 0 {
		return say("report.nothing")
	}
	ran, counts := 0, map[string]int{}
	for _, c := range r.Cells {
		counts[word(in, c)]++
		if c.Verdict != verdict.Skipped {
			ran++
		}
	}
	var ended []string
	for _, bad := range []bool{true, false} {
		for _, v := range verdict.All {
			if word := v.Word(in); counts[word] > 0 && v.Bad == bad {
				ended = append(ended, fmt.Sprintf("%d %s", counts[word], word))
				delete(counts, word)
			}
		}
	}
	for _, word := range slices.Sorted(maps.Keys(counts)) { // those of a newer loadtest
		ended = append(ended, fmt.Sprintf("%d %s", counts[word], word))
	}
	surprises := len(r.Surprises())
	switch {
	case surprises > 0:
		ended = append(ended, say("report.surprises", "n", surprises))
	case ran > 0:
		ended = append(ended, say("report.all-predicted", "n", ran))
	}
	return say("report.title", "n", len(r.Cells), "ended", strings.Join(ended, say("comma")))
}

// broke reports whether something went wrong in a cell, as expected or not.
func broke(c trial.Result) bool {
	return c.Surprise() || verdict.Of(c.Verdict).Bad
}

// Next prints the commands to type after a run: the one that explains a cell, and the one that runs the matrix.
func (t Terminal) Next(r Report, explain func(trial.Result) string, all string) {
	var lines []string
	broken := cellsThat(broke, r.Cells)
	if len(broken) > 0 {
		// A surprise comes first, and then what a fault broke: contention needs no explanation.
		lines = append(lines, explain(slices.MinFunc(broken, func(a, b trial.Result) int { return rank(a) - rank(b) })))
	}
	if !r.isMatrix() {
		lines = append(lines, all)
	}
	if len(lines) > 0 {
		next := t.say("report.next")
		fmt.Fprintln(t.Out, next+strings.Join(lines, "\n"+strings.Repeat(" ", text.LongestLineLen(next))))
	}
}

func rank(c trial.Result) int {
	switch {
	case c.Surprise():
		return 0
	case c.Comparable():
		return 2
	}
	return 1
}

// wouldHold names the nearest strategies that would have held.
func (t Terminal) wouldHold(names []string) string {
	return t.say("report.would-hold", "names", strings.Join(names[:min(len(names), trial.Nearest)], t.say("page.comma")))
}

// telling are the cells that broke: the first of each cause, and those that tell a story alone.
func (r Report) telling() []trial.Result {
	seen := map[verdict.Cause]bool{}
	return slices.DeleteFunc(r.InOrder(), func(c trial.Result) bool {
		if !broke(c) || c.Explanation == nil {
			return !broke(c) || len(c.Story) == 0
		}
		known := seen[c.Explanation.Cause]
		seen[c.Explanation.Cause] = true
		return known
	})
}

// Drawings explains the cells that broke. Of a cell of several items it tells the story.
func (t Terminal) Drawings(r Report) {
	for _, c := range r.telling() {
		if c.Explanation == nil {
			t.heading(c.Name() + t.say("colon") + counted(t.in(), c))
			t.story(c)
			continue
		}
		t.Explain(c)
		fmt.Fprintln(t.Out)
	}
}

// Demo prints a comparison and the cells of a second report that broke, and then what both came to.
// It fits on one screen.
func (t Terminal) Demo(compared, telling Report) {
	t.heading(t.say("report.quiet"))
	t.comparison(compared.Cells)
	broken := cellsThat(broke, telling.Cells)
	if len(broken) > 0 {
		t.heading(t.say("report.telling"))
		w := tabular.New()
		slices.SortStableFunc(broken, telling.byStrategy)
		for _, c := range broken {
			w.AppendRow(table.Row{c.Name(), t.in().Say(c.Because.Short()), t.verdict(c, counted(t.in(), c))})
		}
		t.print(w, t.Header("report.cell", "report.because", "verdict"), nil, 2)
	}
	fmt.Fprintln(t.Out)
	if held := wouldHaveHeldInAll(broken); len(held) > 0 {
		fmt.Fprintln(t.Out, t.wouldHold(held))
	}
	t.closing(Joined(compared, telling))
}

// wouldHaveHeldInAll names strategies that would have held wherever one of the cells broke, the nearest
// to the first one first.
func wouldHaveHeldInAll(broken []trial.Result) []string {
	if len(broken) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(broken[0].Holding()), func(name string) bool {
		return slices.ContainsFunc(broken, func(c trial.Result) bool { return !slices.Contains(c.Holding(), name) })
	})
}

// story prints what the customers of a few sales met.
func (t Terminal) story(c trial.Result) {
	for _, line := range c.Story {
		fmt.Fprintln(t.Out, "  "+t.in().Say(line))
	}
}
