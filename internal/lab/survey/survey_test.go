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
	"stocklock/internal/strategy/declared"
	"stocklock/internal/strategy/ladder"
)

// TestExplorations explores on real servers what stops no process.
func TestExplorations(t *testing.T) {
	s := steptest.Open(t, "", step.Options{Lease: 300 * time.Millisecond})
	t.Run("explorations find what the strategies' properties say", func(t *testing.T) {
		for _, tt := range []struct {
			strategy string
			events   []schedule.Event
			oneShop  bool
			causes   []verdict.Cause
		}{
			{"none", nil, false, []verdict.Cause{verdict.NoLock}},
			{"lock-in-transaction", nil, false, []verdict.Cause{verdict.LateCommit}},
			{"snapshot-before-lock", nil, false, []verdict.Cause{verdict.OldSnapshot}},
			{"lock-then-for-update", nil, false, nil},
			{"conditional", []schedule.Event{schedule.Wait, schedule.Forget, schedule.Lose}, false, nil},
			{"get-lock", []schedule.Event{schedule.Lose}, false, nil},
			{"owner-get-del", []schedule.Event{schedule.Wait}, false, []verdict.Cause{verdict.Overrun}},
			{"fenced", []schedule.Event{schedule.Lag}, false, []verdict.Cause{verdict.ReadBehind}},
			{"mutex", nil, true, nil},
			{"fenced-relative", []schedule.Event{schedule.Lag}, false, nil},
		} {
			v := Plan{Strategy: tt.strategy, Events: tt.events, Customers: 2, Sales: schedule.Sales{OneShop: tt.oneShop}}
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

// TestUnitsInRowsDoNotEndByTime, but where a reservation holds them: only then is a place for each event worth its time.
func TestUnitsInRowsDoNotEndByTime(t *testing.T) {
	for _, s := range ladder.All() {
		of := s.Describe()
		held := of.Lease.Kept == declared.LeaseInMySQL
		if of.State.Scattered() && (step.LocalClock(of) != held || step.Inapplicable(of, schedule.Sales{}, schedule.Cut).IsZero() == held) {
			t.Errorf("%s holds units for a time: %v, and goes by a clock: %v", of.Name, held, step.LocalClock(of))
		}
	}
}
