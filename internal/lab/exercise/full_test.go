//go:build explore

package exercise

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"stocklock/internal/lab/words"
)

// TestAnswersInFull holds each answer to its name by the whole check of its exercise, as a pupil runs it.
// They are checked one after the other: beside each other they would wait for the same servers.
func TestAnswersInFull(t *testing.T) {
	c := open(t)
	for _, a := range everyAnswer(t) {
		t.Run(a.name, func(t *testing.T) {
			begun := time.Now()
			v, err := c.Check(t.Context(), c.answers[a.name], func(step words.Text) { t.Log(step) })
			holdToName(t, a.name, "a check", v, err)
			if v.Record != nil {
				t.Logf("%s: %s", v.Said, v.StepCommand("loadtest"))
			} else if !v.Solved {
				t.Log(v.Said)
			}
			t.Logf("checked in %s", time.Since(begun).Round(time.Second))
		})
	}
}

// TestNoSolutionIsOneOfALaterExercise: who goes on with --from has something to do. The code of each solution is
// checked as it is under the task of each later exercise, also of those before and after the program that grows.
func TestNoSolutionIsOneOfALaterExercise(t *testing.T) {
	var all []task
	for _, later := range exercises[:5] {
		for _, e := range exercises[:later.Lesson-1] {
			for _, a := range answers(t, e) {
				if strings.HasPrefix(a.name, "right-") {
					a.name = fmt.Sprintf("%s/%s as %s", e.name(), a.name, later.name())
					all = append(all, task{later, a})
				}
			}
		}
	}
	c := openWith(t, "later", all)
	for _, a := range all {
		t.Run(a.name, func(t *testing.T) {
			v, err := c.Check(t.Context(), c.answers[a.name], func(words.Text) {})
			if err != nil || v.Solved {
				t.Errorf("solved %t, %v", v.Solved, err)
			}
			t.Logf("%s: %s", v.Cause, v.Said)
		})
	}
}
