//go:build explore

package survey

import (
	"slices"
	"strings"
	"testing"
	"time"

	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/step"
	"stocklock/internal/lab/step/steptest"
)

// limit bounds the orders of one search. Some strategies have tens of thousands; of those a sample
// of the shortest is run.
const limit = 1500

// TestPruningLosesNoOutcomeOnRealServers runs every order of two sales of each strategy, those that
// differ only in independent steps included: without an event, and with wait, forget and lag.
func TestPruningLosesNoOutcomeOnRealServers(t *testing.T) {
	s := steptest.Open(t, "", step.Options{Lease: 600 * time.Millisecond})
	for _, of := range s.Shop().Strategies {
		if !step.Unplayable(of).IsZero() {
			continue
		}
		t.Run(of.Name, func(t *testing.T) {
			for _, events := range [][]schedule.Event{nil, {schedule.Wait}, {schedule.Forget}, {schedule.Lag}} {
				comparePruned(t, s, step.Plan{Strategy: of.Name, Customers: 2, Events: events, MaxEvents: 1, LocalClock: step.LocalClock(of)})
			}
		})
	}
}

func comparePruned(t *testing.T, s *step.Shops, plan step.Plan) {
	pruned, err := explore.Explore(t.Context(), plan.On(s), explore.Search{Slots: s.Slots(plan.Events)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	all, err := explore.Explore(t.Context(), plan.On(s), explore.Search{Slots: s.Slots(plan.Events), Unpruned: true, Limit: limit}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%v: %d runs of %d", plan.Events, pruned.Runs, all.Runs)
	lost := missing(all.Outcomes, pruned.Outcomes)
	if len(lost) > 0 {
		// A row that one run holds can make the reaper late in another one. No replay repeats that.
		if err := explore.Confirm(t.Context(), s.PlaySchedule, &all); err != nil {
			t.Fatal(err)
		}
		for _, once := range all.Once {
			t.Logf("%v: %s", plan.Events, once)
			lost = slices.DeleteFunc(lost, func(outcome string) bool {
				return strings.Contains(outcome, " "+string(once.Cause))
			})
		}
	}
	if len(lost) > 0 {
		t.Errorf("%v: pruning loses %q: pruned %v, all %v", plan.Events, lost, pruned.Outcomes, all.Outcomes)
	}
	if added := missing(pruned.Outcomes, all.Outcomes); !all.Limited() && len(added) > 0 {
		t.Errorf("%v: pruning adds %q: pruned %v, all %v", plan.Events, added, pruned.Outcomes, all.Outcomes)
	}
	// After the lock was forgotten, a renewal of the holder and the heartbeat of a waiter race: a
	// few such runs cannot be repeated on any machine.
	if given := slices.Concat(pruned.GivenUp, all.GivenUp, pruned.Unreached, all.Unreached); len(given) > max(1, all.Runs/100) {
		t.Errorf("%v: %d runs were given up or not reached again: %s", plan.Events, len(given), given[0])
	}
}

// missing are the outcomes of some runs that others do not have.
func missing(some, others map[string]int) []string {
	var lost []string
	for outcome := range some {
		if others[outcome] == 0 {
			lost = append(lost, outcome)
		}
	}
	return lost
}
