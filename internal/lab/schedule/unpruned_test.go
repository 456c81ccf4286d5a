//go:build explore

package schedule

import (
	"testing"

	"stocklock/internal/strategy/ladder"
)

// limit bounds the orders of one search. Some strategies have tens of thousands; of those a sample of
// the shortest is run.
const limit = 4000

// TestPruningLosesNoOutcomeOnRealServers runs every order of two sales of each strategy, those that
// differ only in independent steps included, without an event and with the two that shared lanes have.
func TestPruningLosesNoOutcomeOnRealServers(t *testing.T) {
	s := newStage(t, 0)
	for _, of := range ladder.All() {
		if of.NeedsQuorum || of.AnswersFirst || of.State.Remaining != "" {
			continue
		}
		for _, events := range [][]Event{nil, {Wait}, {Forget}} {
			plan := Plan{Strategy: of.Name, Customers: 2, Events: events, MaxEvents: 1, LocalClock: LocalClock(of.Properties)}
			pruned, err := Explore(t.Context(), s, Search{Plan: plan}, nil)
			if err != nil {
				t.Fatal(err)
			}
			all, err := Explore(t.Context(), s, Search{Plan: plan, Unpruned: true, Limit: limit}, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s, %v: %d runs of %d", of.Name, events, pruned.Runs, all.Runs)
			for outcome := range all.outcomes {
				if pruned.outcomes[outcome] == 0 {
					t.Errorf("%s, %v: pruning loses %s: pruned %v, all %v", of.Name, events, outcome, pruned.outcomes, all.outcomes)
				}
			}
			if !all.limited && len(all.outcomes) != len(pruned.outcomes) {
				t.Errorf("%s, %v: pruned %v, all %v", of.Name, events, pruned.outcomes, all.outcomes)
			}
		}
	}
}
