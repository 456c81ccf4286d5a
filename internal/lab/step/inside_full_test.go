//go:build explore

package step_test

import (
	"testing"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/step"
	"stocklock/internal/lab/step/steptest"
)

// TestBothSteppersUnderEvents: the strategies of this repository end at the wire as they end inside the shop, where
// leases end, and processes die.
func TestBothSteppersUnderEvents(t *testing.T) {
	inside := steptest.Open(t, "", step.Options{Lease: insideLease})
	for _, tt := range []struct {
		strategy string
		event    schedule.Event
	}{
		{"none", schedule.Kill}, {"conditional", schedule.Kill}, {"for-update", schedule.Kill}, {"owner-get-del", schedule.Kill},
		{"owner-get-del", schedule.Wait}, {"owner-get-del", schedule.FlushAll}, {"fenced-relative", schedule.FlushAll},
	} {
		sameEndings(t, inside, open(t, tt.strategy), false, tt.strategy, tt.event)
	}
	for _, strategy := range []string{"optimistic", "set-ex-nx", "lua-setex", "owner-checked", "reentrant", "snapshot-before-lock"} {
		sameEndings(t, inside, open(t, strategy), false, strategy)
	}
	for _, strategy := range []string{"fenced-relative", "reentrant"} {
		sameEndings(t, inside, open(t, strategy), true, strategy, schedule.Pause)
	}
}
