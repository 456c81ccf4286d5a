package main

import (
	"fmt"
	"strings"
	"unicode"

	"stocklock/internal/lab/mine"
	"stocklock/internal/lab/words"
)

// mine is the block of the page of questions that lead from a reader's code to a cell.
func (l language) mine() string {
	in := words.English
	if l.words != nil {
		in = words.Chinese
	}
	var short, long strings.Builder
	fmt.Fprintf(&short, "| | %s | %s | %s |\n|---|---|---|---|\n", l.mineLook, l.breaks, l.mends)
	questions := mine.Questions()
	for i, q := range questions {
		heading := fmt.Sprintf("%d. %s", i+1, in.Say(q.Ask()))
		anchor := fmt.Sprintf("[%d](#%s)", i+1, anchorOf(heading))
		fmt.Fprintf(&long, "\n## %s\n\n%s\n", heading, in.Say(q.Look()))
		for _, a := range q.Answers {
			fmt.Fprintf(&short, "| %s | %s | `%s:%s` | `%s` |\n", anchor, in.Say(a.Says()), a.Strategy, a.Scenario, a.Twin)
			explain := "loadtest run %s:" + a.Scenario + " --draw"
			fmt.Fprintf(&long, "\n**%s**\n```%s\n%s```\n%s\n", in.Say(a.Says()), a.Language, a.Code, in.Say(a.Why()))
			fmt.Fprintf(&long, l.breaksUnder, l.section(a.Strategy, ""), l.section(a.Scenario, ""), fmt.Sprintf(explain, a.Strategy))
			fmt.Fprintf(&long, l.holdsThere+"\n", l.section(a.Twin, ""), fmt.Sprintf(explain, a.Twin))
		}
		if i+1 < len(questions) {
			fmt.Fprintf(&long, "\n"+l.noneOfThese+"\n", anchorOf(fmt.Sprintf("%d. %s", i+2, in.Say(questions[i+1].Ask()))))
		}
	}
	return short.String() + long.String() + "\n" + l.mineEnd + "\n"
}

// anchorOf is the anchor that GitHub gives a heading.
func anchorOf(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, heading)
}
