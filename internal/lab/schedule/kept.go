package schedule

import (
	_ "embed"
	"fmt"
	"strings"

	"stocklock/internal/lab/verdict"
)

//go:embed kept.txt
var keptText string

// Kept is a bad schedule that an exploration has found, the shortest for its cause.
type Kept struct {
	Strategy string
	Verdict  verdict.Kind
	Cause    verdict.Cause
	Schedule Schedule
}

// KeptSchedules returns the schedules that this repository keeps.
func KeptSchedules() (all []Kept) {
	for line := range strings.Lines(keptText) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.Fields(line)
		if len(words) < 4 {
			panic(fmt.Sprintf("a kept schedule is %q: want a verdict, a cause, a strategy and a schedule", line))
		}
		s, err := Parse(strings.Join(words[3:], " "))
		if err != nil {
			panic(err) // it is part of the program
		}
		all = append(all, Kept{Strategy: words[2], Verdict: verdict.Kind(words[0]), Cause: verdict.Cause(words[1]), Schedule: s})
	}
	return all
}
