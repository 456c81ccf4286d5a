package soak

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"stocklock/internal/lab/catalog/catalogtest"
	"stocklock/internal/strategy/ladder"
)

func run(t *testing.T, o Options, strategies ...string) Report {
	t.Helper()
	o.Shop = catalogtest.Shop(t).Program
	// A busy machine may be slow to recover: that is for a soak that somebody watches.
	o.Shops, o.RecoverWithin, o.Log = 3, time.Minute, t.Output()
	for _, name := range strategies {
		by, err := ladder.ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		o.Strategies = append(o.Strategies, by.Describe())
	}
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var tables bytes.Buffer
	r.Print(&tables)
	t.Log("\n" + tables.String())
	return r
}

func TestWhatShouldSurviveASoakDoes(t *testing.T) {
	r := run(t, Options{Seed: 1, Duration: 12 * time.Second, Rate: 60}, "fenced", "fenced-relative", "for-update", "optimistic", "conditional", "batched")
	if !r.Survived() {
		t.Errorf("found:\n%s", strings.Join(r.Findings, "\n"))
	}
	injected := 0
	for _, f := range r.Recoveries {
		injected += f.Times
	}
	if injected < 3 || r.Repeats == 0 {
		t.Errorf("%d faults, %d repeats: that was no soak", injected, r.Repeats)
	}
	for _, a := range r.Accounts {
		if a.Answers < 20 || a.Answers != a.Orders || a.Items < 2 {
			t.Errorf("%s: %d answers with 201, %d orders, of %d items", a.Strategy, a.Answers, a.Orders, a.Items)
		}
	}
}

// TestASoakCanFail: if nobody oversold here, a soak that finds nothing would mean nothing.
func TestASoakCanFail(t *testing.T) {
	r := run(t, Options{Seed: 2, Duration: 5 * time.Second, Rate: 60}, "none")
	a := r.Accounts[0]
	if r.Survived() || a.Oversold+a.LostUpdates == 0 {
		t.Errorf("shops without a lock survived: %+v", a)
	}
	if a.AnswersWithoutOrder > 0 || a.Duplicates > 0 {
		t.Errorf("even without a lock an answer has its order: %+v", a)
	}
}

// TestKillsInTurn sells out by a way that answers after the COMMIT, and by one that answers before.
func TestKillsInTurn(t *testing.T) {
	for strategy, held := range map[string]bool{"batched": true, "redis-async": false} {
		t.Run(strategy, func(t *testing.T) {
			r := run(t, Options{Sales: 4000, Workers: 48, Every: 300 * time.Millisecond}, strategy)
			a := r.Accounts[0]
			if r.Recoveries[&kinds[0]].Times == 0 || a.Doubtful == 0 {
				t.Errorf("%+v, %d customers in doubt: nothing was tested", r.Recoveries, a.Doubtful)
			}
			if r.Survived() != held || a.AnswersWithoutOrder == 0 != held {
				t.Errorf("%d answers without an order, found %q", a.AnswersWithoutOrder, r.Findings)
			}
			if held && (a.Answers != 4000 || a.Sold != 4000 || a.Left != 0) {
				t.Errorf("%d answers with 201 for %d units sold, %d left: want 4000 and none", a.Answers, a.Sold, a.Left)
			}
		})
	}
}
