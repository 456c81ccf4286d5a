package step_test

import (
	"errors"
	"testing"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/step"
	"stocklock/internal/lab/verdict"
)

// TestFaults: a process that dies at each of its requests, and a connection that is cut before each answer.
func TestFaults(t *testing.T) {
	s := open(t, "conditional")
	for _, event := range []schedule.Event{schedule.Kill, schedule.Lose} {
		for steps := 1; steps <= 2; steps++ {
			r, err := s.Fault(t.Context(), event, steps, false)
			if err != nil || r.Outcome.Bad() || !r.Played.Has(event) || len(r.Outcome.Orders) != 1 {
				t.Errorf("%s after %d: %+v %v", event, steps, r.Outcome, err)
			}
			if a := r.Outcome.Answers["A"]; event == schedule.Kill && a != "no answer" {
				t.Errorf("a process that was killed has answered with %s", a)
			}
		}
	}
	if _, err := s.Fault(t.Context(), schedule.Pause, 1, false); err == nil {
		t.Error("a lease ended that there is not")
	}
}

// TestRedisLosesTheLock: where a holder works, and Redis loses its lock in each of the ways, the next customer
// gets in, and both sell. A fence in the database refuses one of them. Where the sale has nothing in Redis any
// more, the fault met nothing.
func TestRedisLosesTheLock(t *testing.T) {
	t.Parallel()
	for strategy, want := range map[string]verdict.Cause{"owner-get-del": verdict.Forgotten, "fenced-relative": ""} {
		s := open(t, strategy)
		for _, event := range []schedule.Event{schedule.FlushAll, schedule.Evict, schedule.Restart, schedule.Failover} {
			var got verdict.Cause
			for steps := 1; ; steps++ {
				r, err := s.Fault(t.Context(), event, steps, true)
				if errors.Is(err, step.ErrUnmet) && steps > 4 {
					break
				}
				if err != nil {
					t.Fatalf("%s, %s after %d: %v", strategy, event, steps, err)
				}
				if !r.Played.Has(event) {
					t.Errorf("%s, %s after %d: only %s was played", strategy, event, steps, r.Played)
				}
				if r.Outcome.Bad() {
					got = r.Outcome.Cause
				}
			}
			if got != want {
				t.Errorf("%s, %s: found %q, want %q", strategy, event, got, want)
			}
		}
	}
}
