package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
)

// surprising is the colour of what was not expected, and of what got worse.
var surprising = text.Colors{text.FgHiRed, text.Bold}

// word is the verdict in one word.
func word(in *words.Language, c trial.Result) string { return c.Shown().Word(in) }

// counted is the verdict, and by how much.
func counted(in *words.Language, c trial.Result) string { return c.Shown().Counted(in, c.Facts()) }

// reason says in words what a cell's verdict rests on. It is empty where the cell held and
// sold all.
func reason(in *words.Language, c trial.Result) string {
	if why := c.Why(); !why.IsZero() {
		return in.Say(why)
	}
	return in.Say(c.Shown().Reason(c.Facts()))
}

// verdictsOf has the entries of the verdicts that these cells have.
func verdictsOf(cells []trial.Result) []verdict.Verdict {
	return slices.DeleteFunc(slices.Clone(verdict.All), func(v verdict.Verdict) bool {
		return !slices.ContainsFunc(cells, func(c trial.Result) bool { return c.Shown().Kind == v.Kind })
	})
}

// verdict is the word, and what was expected where that is something else.
func (t Terminal) verdict(c trial.Result, word string) string {
	if c.Surprise() {
		return t.paint(surprising, t.say("report.expected", "word", word, "expected", c.Expected)+agreed(c))
	}
	return t.paint(c.Shown().Terminal, word+agreed(c))
}

// short is a verdict that fits into the matrix.
func (t Terminal) short(c trial.Result) string {
	word := strings.TrimSpace(c.Shown().Short(t.in(), c.Facts()) + agreed(c) + " " + c.Promise())
	if c.Surprise() {
		return t.paint(surprising, "!! "+word)
	}
	return t.paint(c.Shown().Terminal, word)
}

// agreed says in how many of several runs the verdict was the expected one.
func agreed(c trial.Result) string {
	if c.Runs < 2 || c.Verdict == verdict.Skipped {
		return ""
	}
	return fmt.Sprintf(" %d/%d", c.Agreed, c.Runs)
}
