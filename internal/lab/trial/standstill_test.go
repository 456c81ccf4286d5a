package trial

import (
	"testing"
	"time"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/verdict"
)

// TestAFenceThatRefusesEverybody: nothing is sold any more when the fence has refused as many requests as
// there are customers, and all of them came after the last sale.
func TestAFenceThatRefusesEverybody(t *testing.T) {
	const workers = 3
	begun := time.Now()
	for _, tt := range []struct {
		what     string
		outcomes []load.Outcome // one request after the other
		held     bool           // by the play
		want     bool
	}{
		{what: "all", outcomes: []load.Outcome{load.Sold, load.Fenced, load.Fenced, load.Fenced}, want: true},
		{what: "all, before the first sale", outcomes: []load.Outcome{load.Fenced, load.Fenced, load.Fenced}, want: true},
		{what: "all but one", outcomes: []load.Outcome{load.Sold, load.Fenced, load.Fenced}},
		{what: "a newer one sells", outcomes: []load.Outcome{load.Fenced, load.Fenced, load.Sold, load.Fenced}},
		{what: "all, while one is held", outcomes: []load.Outcome{load.Fenced, load.Fenced, load.Fenced}, held: true},
		{what: "nothing is left", outcomes: []load.Outcome{load.SoldOut, load.Fenced, load.Fenced, load.Fenced}},
	} {
		a := attackOf(Options{Stock: 30, Workers: workers})
		a.play = &play{attack: a, holding: tt.held}
		a.progress.start(begun)
		for _, outcome := range tt.outcomes {
			a.progress.answered(&Customer{wish: wish{quantity: 1}, Answer: load.Answer{Outcome: outcome, Sent: time.Now()}})
		}
		if got := a.standsStill(t.Context()); got != tt.want {
			t.Errorf("%s: it stands still: %t, want %t", tt.what, got, tt.want)
		}
		if got := a.facts(&Result{Remaining: 9}); tt.want && (got.Verdict().Kind != verdict.Stuck || !got.Waiting.Fenced) {
			t.Errorf("%s: %+v", tt.what, got)
		}
	}
}

// TestALockWithoutAnEndInSight: one whose lease outlasts the cell ends as little as one without a lease.
func TestALockWithoutAnEndInSight(t *testing.T) {
	now := time.Now()
	a := attackOf(Options{Lease: time.Second})
	for left, want := range map[time.Duration]bool{0: true, time.Second: false, maxCell: false, 1000 * time.Second: true} {
		k := keyState{now: now}
		if left > 0 {
			k.end = now.Add(left)
		}
		if got := a.endlessIn(lockState{keys: map[string]keyState{"lock": k}}); got != want {
			t.Errorf("a lock with %s left has no end in sight: %t, want %t", left, got, want)
		}
	}
}
