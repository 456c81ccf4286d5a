// Package mine has the questions that lead from a reader's code to the cell that breaks it.
//
// The page docs/is-it-mine.md and the view of the live page are made from this one table. To add an answer,
// add it to its question, and what it says to the catalogue: the tests hold each to a cell that is expected to fail, and to a twin that is
// expected to hold in the same scenario.
package mine

import (
	"slices"

	"stocklock/internal/lab/words"
)

// Question is one of those to ask of one's code.
type Question struct {
	Key     string   `json:"key"` // of its anchor
	Answers []Answer `json:"answers"`
}

// Answer is what the code may do, and what follows.
type Answer struct {
	Language string `json:"language"` // of the snippet, as a fence of Markdown names it
	// The cell that breaks it, and the strategy that changes the least and holds in that scenario.
	Strategy string `json:"strategy"`
	Scenario string `json:"scenario"`
	Twin     string `json:"twin"`
	Code     string `json:"code"`
}

// Ask is the question, and Look where in the code to look. Markdown may mark code in these, and nothing else.
func (q Question) Ask() words.Text  { return words.Of("ask." + q.Key) }
func (q Question) Look() words.Text { return words.Of("look." + q.Key) }

// Says is what the code does, and Why what follows.
func (a Answer) Says() words.Text { return words.Of("says." + a.Strategy + ":" + a.Scenario) }
func (a Answer) Why() words.Text  { return words.Of("why." + a.Strategy + ":" + a.Scenario) }

// Questions returns the questions in the order in which they are asked.
func Questions() []Question { return slices.Clone(questions) }

// Known returns the questions with the answers whose strategies and scenarios are known, as of a shop that
// has other strategies.
func Known(known func(strategy, scenario string) bool) []Question {
	all := Questions()
	for i := range all {
		all[i].Answers = slices.DeleteFunc(slices.Clone(all[i].Answers), func(a Answer) bool {
			return !known(a.Strategy, a.Scenario) || !known(a.Twin, a.Scenario)
		})
	}
	return slices.DeleteFunc(all, func(q Question) bool { return len(q.Answers) == 0 })
}
