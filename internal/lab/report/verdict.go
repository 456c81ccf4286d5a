package report

import (
	"fmt"

	"github.com/jedib0t/go-pretty/v6/text"

	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/trial"
)

// colours are those of the verdicts in the terminal. Those of the page are in html/style.css, under
// "The colours of verdicts".
var colours = map[scenario.Kind]text.Colors{
	scenario.Held:       {text.FgGreen},
	scenario.Oversold:   {text.FgYellow},
	scenario.Lied:       {text.FgYellow},
	scenario.Left:       {text.FgYellow},
	scenario.Unbalanced: {text.FgYellow},
	scenario.Stuck:      {text.FgYellow},
	scenario.Invalid:    {text.FgYellow},
}

// surprising is the colour of what was not expected, and of what got worse.
var surprising = text.Colors{text.FgHiRed, text.Bold}

// degraded is the word for a cell that held and sold less than was wanted.
const degraded = "degraded"

// word is the verdict in one word.
func word(c trial.Result) string {
	if c.Degraded() {
		return degraded
	}
	return string(c.Verdict)
}

// counted is the verdict, and by how much.
func counted(c trial.Result) string {
	switch c.Verdict {
	case scenario.Oversold:
		return fmt.Sprintf("oversold %d", c.Oversold)
	case scenario.Lied:
		return fmt.Sprintf("lied %d", c.AnswersWithoutOrder)
	case scenario.Left:
		return fmt.Sprintf("left %d", c.Remaining)
	case scenario.Unbalanced:
		return fmt.Sprintf("unbalanced %+d", c.LostUpdates)
	}
	return word(c)
}

// verdict is the word, and what was expected where that is something else.
func (t Terminal) verdict(c trial.Result, word string) string {
	switch {
	case c.Surprise():
		return t.paint(surprising, word+", expected "+string(c.Expected)+agreed(c))
	case c.Verdict == scenario.Skipped:
		return word
	}
	return t.paint(colours[c.Verdict], word+agreed(c))
}

// short is a verdict that fits into the matrix.
func (t Terminal) short(c trial.Result) string {
	word := counted(c)
	switch c.Verdict {
	case scenario.Oversold:
		word = fmt.Sprintf("+%d", c.Oversold)
	case scenario.Skipped:
		return dash
	}
	word += agreed(c)
	if c.Surprise() {
		return t.paint(surprising, "!! "+word)
	}
	return t.paint(colours[c.Verdict], word)
}

// agreed says in how many of several runs the verdict was the expected one.
func agreed(c trial.Result) string {
	if c.Runs < 2 {
		return ""
	}
	return fmt.Sprintf(" %d/%d", c.Agreed, c.Runs)
}
