package main

import (
	"fmt"
	"strings"

	"stocklock/internal/lab/mine"
	lab "stocklock/internal/lab/pages"
)

// mine is the block of the page of questions that lead from a reader's code to a cell.
func (l language) mine() string {
	var short, long strings.Builder
	short.WriteString(l.say("mine") + "\n|---|---|---|---|\n")
	questions := mine.Questions()
	for i, q := range questions {
		heading := fmt.Sprintf("%d. %s", i+1, l.Say(q.Ask()))
		anchor := fmt.Sprintf("[%d](#%s)", i+1, lab.Anchor(heading))
		fmt.Fprintf(&long, "\n## %s\n\n%s\n", heading, l.Say(q.Look()))
		for _, a := range q.Answers {
			fmt.Fprintf(&short, "| %s | %s | `%s:%s` | `%s` |\n", anchor, l.Say(a.Says()), a.Strategy, a.Scenario, a.Twin)
			fmt.Fprintf(&long, "\n**%s**\n```%s\n%s```\n%s\n", l.Say(a.Says()), a.Language, a.Code, l.Say(a.Why()))
			fmt.Fprintln(&long, l.say("mine.answer", "strategy", l.section(a.Strategy, ""), "scenario", l.section(a.Scenario, ""), "cell", a.Strategy+":"+a.Scenario,
				"twin", l.section(a.Twin, ""), "beside", a.Twin+":"+a.Scenario))
		}
		if i+1 < len(questions) {
			fmt.Fprintf(&long, "\n%s\n", l.say("mine.next", "anchor", lab.Anchor(fmt.Sprintf("%d. %s", i+2, l.Say(questions[i+1].Ask())))))
		}
	}
	return short.String() + long.String() + "\n" + l.say("mine.end") + "\n"
}
