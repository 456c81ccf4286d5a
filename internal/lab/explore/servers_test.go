package explore

import (
	"slices"
	"testing"
	"time"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/stage"
	"stocklock/internal/lab/stage/stagetest"
)

// TestExplorations explores on real servers what does not stop a process.
func TestExplorations(t *testing.T) {
	s := stagetest.Open(t, "", stage.Options{Lease: 300 * time.Millisecond})
	t.Run("explorations find what the strategies' properties say", func(t *testing.T) {
		for _, tt := range []struct {
			strategy string
			events   []schedule.Event
			causes   []schedule.Cause
		}{
			{"none", nil, []schedule.Cause{schedule.NoLock}},
			{"conditional", []schedule.Event{schedule.Wait, schedule.Forget, schedule.Lose}, nil},
			{"get-lock", []schedule.Event{schedule.Lose}, nil},
			{"owner-get-del", []schedule.Event{schedule.Wait}, []schedule.Cause{schedule.Overrun}},
		} {
			v := Survey{Strategy: tt.strategy, Events: tt.events, Customers: 2}
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
		found, err := Explore(t.Context(), s, Search{Plan: stage.Plan{Strategy: "none", Customers: 2, Everything: true}, Unpruned: true}, nil)
		if err != nil || found.Runs != 24 || found.outcomes["oversold no-lock 1→0 1→0"] == 0 || found.outcomes["held  1→0"] == 0 {
			t.Errorf("%d runs, %v, %v, want 24", found.Runs, found.outcomes, err)
		}
	})
}
