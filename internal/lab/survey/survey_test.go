package survey

import (
	"slices"
	"testing"
	"time"

	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/step"
	"stocklock/internal/lab/step/steptest"
	"stocklock/internal/lab/verdict"
)

// TestExplorations explores on real servers what stops no process.
func TestExplorations(t *testing.T) {
	s := steptest.Open(t, "", step.Options{Lease: 300 * time.Millisecond})
	t.Run("explorations find what the strategies' properties say", func(t *testing.T) {
		for _, tt := range []struct {
			strategy string
			events   []schedule.Event
			causes   []verdict.Cause
		}{
			{"none", nil, []verdict.Cause{verdict.NoLock}},
			{"lock-in-transaction", nil, []verdict.Cause{verdict.LateCommit}},
			{"snapshot-before-lock", nil, []verdict.Cause{verdict.OldSnapshot}},
			{"lock-then-for-update", nil, nil},
			{"conditional", []schedule.Event{schedule.Wait, schedule.Forget, schedule.Lose}, nil},
			{"get-lock", []schedule.Event{schedule.Lose}, nil},
			{"owner-get-del", []schedule.Event{schedule.Wait}, []verdict.Cause{verdict.Overrun}},
			{"fenced", []schedule.Event{schedule.Lag}, []verdict.Cause{verdict.ReadBehind}},
			{"fenced-relative", []schedule.Event{schedule.Lag}, nil},
		} {
			v := Plan{Strategy: tt.strategy, Events: tt.events, Customers: 2}
			err := v.Run(t.Context(), s, func(Result, int, int) {}, func(r Result) {
				if !slices.Equal(r.Found.Causes(), tt.causes) || len(r.Surprises) > 0 || r.Found.Runs == 0 {
					t.Errorf("%s, %s: %d runs, causes %v, surprises %v, want causes %v", r.Strategy, r.Name(), r.Found.Runs, r.Found.Causes(), r.Surprises, tt.causes)
				}
			})
			if err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("two plain sales without pruning", func(t *testing.T) {
		plan := step.Plan{Strategy: "none", Customers: 2, Everything: true}
		found, err := explore.Explore(t.Context(), plan.On(s), explore.Search{Unpruned: true, Slots: s.Slots(nil)}, nil)
		if err != nil || found.Runs != 24 || found.Outcomes["oversold no-lock 1→0 1→0"] == 0 || found.Outcomes["held  1→0"] == 0 {
			t.Errorf("%d runs, %v, %v, want 24", found.Runs, found.Outcomes, err)
		}
	})
}
