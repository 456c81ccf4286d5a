//go:build explore

package schedule

import (
	"maps"
	"slices"
	"testing"

	"stocklock/internal/strategy/ladder"
)

// TestPruningLosesNoOutcomeOnRealServers runs every order of two sales of each strategy, those that
// differ only in independent steps included, without an event and with the two that shared lanes have.
func TestPruningLosesNoOutcomeOnRealServers(t *testing.T) {
	s := newStage(t, 0)
	for _, of := range ladder.All() {
		if of.NeedsQuorum {
			continue
		}
		for _, events := range [][]Event{nil, {Wait}, {Forget}} {
			plan := Plan{Strategy: of.Name, Customers: 2, Events: events, MaxEvents: 1, LocalClock: LocalClock(of.Properties)}
			pruned, err := Explore(t.Context(), s, Search{Plan: plan}, nil)
			if err != nil {
				t.Fatal(err)
			}
			all, err := Explore(t.Context(), s, Search{Plan: plan, Unpruned: true}, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s, %v: %d runs of %d", of.Name, events, pruned.Runs, all.Runs)
			if !slices.Equal(slices.Sorted(maps.Keys(pruned.outcomes)), slices.Sorted(maps.Keys(all.outcomes))) {
				t.Errorf("%s, %v: pruned %v, all %v", of.Name, events, pruned.outcomes, all.outcomes)
			}
		}
	}
}
