package step_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/step"
	"stocklock/internal/lab/step/steptest"
)

func ending(r schedule.Record) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s, %d orders", r.Outcome.Verdict, r.Outcome.Cause, len(r.Outcome.Orders)))
}

// allEndings explores a strategy. It returns the runs by what those have in common that ended alike, each with a schedule.
func allEndings(t *testing.T, play explore.Player, slots int, strategy string, events ...schedule.Event) (map[string]string, explore.Found) {
	t.Helper()
	var mu sync.Mutex // several runs at once
	seen := map[string]string{}
	keeps := func(ctx context.Context, choose func() explore.Chooser) (schedule.Record, error) {
		r, err := play(ctx, choose)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			seen[ending(r)] = r.Schedule.String()
		}
		return r, err
	}
	found, err := explore.Explore(t.Context(), keeps, explore.Search{Slots: slots}, nil)
	if err != nil || found.Unknown().Key != "" {
		t.Fatalf("%s under %v: %v %s", strategy, events, err, found.Unknown())
	}
	return seen, found
}

// sameEndings wants the same endings of an exploration at the wire and of one inside the shop. With inTime, leases end by
// themselves at the wire.
func sameEndings(t *testing.T, inside *step.Shops, wire *step.Service, inTime bool, strategy string, events ...schedule.Event) {
	t.Helper()
	plan := step.Plan{Strategy: strategy, Customers: 2, Events: events, MaxEvents: 1, MaxSteps: 200}
	there, foundThere := allEndings(t, plan.On(inside), inside.Slots(events), strategy, events...)
	atWire := plan
	atWire.Early, atWire.Late = !inTime, inTime
	here, foundHere := allEndings(t, atWire.On(wire), 1, strategy, events...)
	t.Logf("%s under %v: inside %d runs, at the wire %d: %v", strategy, events, foundThere.Runs, foundHere.Runs, here)
	if a, b := slices.Sorted(maps.Keys(there)), slices.Sorted(maps.Keys(here)); !slices.Equal(a, b) {
		t.Errorf("%s under %v ends inside as %q, and at the wire as %q", strategy, events, there, here)
	}
	if inTime {
		return // the second customer comes after the event, which the stepper inside does not ask for
	}
	if foundThere.Bad > 0 && (foundHere.Bad == 0 || foundHere.Shortest[0].Schedule.String() != foundThere.Shortest[0].Schedule.String()) {
		t.Errorf("%s under %v: the shortest bad schedule is not %s at the wire: %v", strategy, events, foundThere.Shortest[0].Schedule, foundHere.Causes())
	}
}

// TestBothSteppers: the strategies of this repository end at the wire as they end in the stepper inside the shop.
func TestBothSteppers(t *testing.T) {
	t.Parallel()
	inside := steptest.Open(t, "", step.Options{Lease: insideLease})
	for _, strategy := range []string{"none", "conditional", "for-update", "fenced-relative", "owner-get-del", "lock-in-transaction"} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			s := open(t, strategy)
			sameEndings(t, inside, s, false, strategy)
			switch strategy {
			case "none", "conditional", "for-update":
				sameEndings(t, inside, s, false, strategy, schedule.Lose)
			case "owner-get-del":
				for _, order := range []string{
					"A.set A.select wait B.set B.select", "A.set wait B.set B.select", "A.set A.select wait B.set A.update",
					"A.set A.select A.update A.insert A.commit A.get wait B.set B.select A.del",
				} {
					there, err := inside.PlaySchedule(t.Context(), strategy, 2, steptest.Parse(t, order))
					if err != nil {
						t.Fatal(err)
					}
					here, err := s.InTime(t.Context(), "", 2, steptest.Parse(t, order))
					if err != nil || ending(here) != ending(there) || fmt.Sprint(here.Outcome.Answers) != fmt.Sprint(there.Outcome.Answers) {
						t.Errorf("%s, %s: inside %s %v, at the wire %s %v, %v", strategy, order, ending(there), there.Outcome.Answers, ending(here), here.Outcome.Answers, err)
					}
				}
			}
		})
	}
}

const insideLease = 600 * time.Millisecond
