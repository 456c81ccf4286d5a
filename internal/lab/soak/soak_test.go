package soak

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"stocklock/internal/strategy/ladder"
	"stocklock/internal/testserver"
)

func run(t *testing.T, seed uint64, duration time.Duration, strategies ...string) Report {
	t.Helper()
	testserver.NeedsServers(t)
	// A busy machine may be slow to recover: that is for a soak that somebody watches.
	o := Options{Shops: 3, Duration: duration, Seed: seed, Rate: 60, RecoverWithin: time.Minute, Log: t.Output()}
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
	r := run(t, 1, 25*time.Second, "fenced", "for-update", "optimistic", "conditional")
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
	r := run(t, 2, 5*time.Second, "none")
	a := r.Accounts[0]
	if r.Survived() || a.Oversold+a.LostUpdates == 0 {
		t.Errorf("shops without a lock survived: %+v", a)
	}
	if a.AnswersWithoutOrder > 0 || a.Duplicates > 0 {
		t.Errorf("even without a lock an answer has its order: %+v", a)
	}
}
