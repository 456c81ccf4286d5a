//go:build explore

package exercise

import (
	"testing"
	"time"

	"stocklock/internal/testserver"
)

// TestAnswersInFull holds each answer to its name by the whole check of its exercise, as a pupil runs it.
// They are checked one after the other: beside each other they would wait for the same servers.
func TestAnswersInFull(t *testing.T) {
	testserver.NeedsServers(t)
	all, as := putAll(t)
	c := open(t, all...)
	for i, a := range as {
		t.Run(a.name, func(t *testing.T) {
			begun := time.Now()
			v, err := c.Check(t.Context(), all[i], func(step string) { t.Log(step) })
			holdToName(t, a.name, "a check", v, err)
			if v.Record != nil {
				t.Logf("%s: %s", v.Said, v.StepCommand())
			} else if !v.Solved {
				t.Log(v.Said)
			}
			t.Logf("checked in %s", time.Since(begun).Round(time.Second))
		})
	}
}
