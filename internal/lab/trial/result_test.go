package trial

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/strategy/ladder"
)

func TestAComparableCellKeepsItsConditions(t *testing.T) {
	o := Options{Conditions: Conditions{LeaseMS: 10000, WorkMS: 10}}
	for _, comparable := range []bool{true, false} {
		r := newResult(Scenario{Comparable: comparable, Attacks: declared.Exclusive}, ladder.All()[0].Describe(), 1, o, 3)
		if kept := r.Conditions == o.Conditions; kept != comparable {
			t.Errorf("comparable %v: it keeps %+v", comparable, r.Conditions)
		}
	}
}

func TestCountsAndLatencies(t *testing.T) {
	begun := time.Now()
	request := func(scheduled, sent, took, status int, outcome load.Outcome, err error) *Customer {
		at := func(ms int) time.Time { return begun.Add(time.Duration(ms) * time.Millisecond) }
		return &Customer{scheduled: at(scheduled), Answer: load.Answer{Sent: at(sent), Latency: time.Duration(took) * time.Millisecond,
			Status: status, Outcome: outcome, Err: err}}
	}
	a := attackOf(Options{})
	a.begun, a.usage, a.play = begun, &usage{}, &play{}
	a.customers.hits = []*Customer{
		request(2, 5, 20, 201, load.Sold, nil),
		request(0, 0, 10, 201, load.Sold, nil),
		request(4, 9, 30, 409, load.SoldOut, nil),
		request(6, 10, 40, 0, load.Unknown, errors.New("EOF")),
		{scheduled: begun}, // interrupted before it was sent
	}
	r := newResult(Scenario{Attacks: declared.Exclusive}, ladder.All()[0].Describe(), 1, Options{}, 3)
	r.count(a)
	if r.Requests != 5 || r.Answered != 2 || r.SoldOut != 1 || r.Unknown != 2 {
		t.Errorf("counted %+v", r)
	}
	if math.Abs(r.Latency.Max-30) > 0.1 || math.Abs(r.Corrected.Max-35) > 0.1 {
		t.Errorf("the longest answer took %v ms, %v from the scheduled time, want 30 and 35", r.Latency.Max, r.Corrected.Max)
	}
}

// TestACellThatCannotBePrepared is invalid with the reason, and counts nothing.
func TestACellThatCannotBePrepared(t *testing.T) {
	s := attackOf(Options{}).Show
	s.Scenario.Crowd.Prepare = func(context.Context, *rig.Testbed) error { return errors.New("no such clock") }
	a, r := newAttack(s), Result{}
	failed := a.run(t.Context())
	r.count(a)
	if j := a.judge(&r, explain.Evidence{View: a.play.view}, failed); j.Kind != verdict.Invalid || j.Problem != "prepare: no such clock" {
		t.Errorf("%+v", j)
	}
}

// TestDemandMayBeLeftAsDeclared: what is said of a degraded cell tells a strategy that starves from another.
func TestDemandMayBeLeftAsDeclared(t *testing.T) {
	for _, s := range ladder.All() {
		r := newResult(Scenario{Attacks: declared.Exclusive}, s.Describe(), 1, Options{}, 3)
		r.Verdict, r.Remaining = verdict.Held, 1
		said := r.Shown().Reason(r.Facts()).String()
		if strings.HasSuffix(said, "with demand left, as its strategy declares") != s.Declared.Starves || !strings.Contains(said, "demand left") {
			t.Errorf("%s starves: %t, and it is said: %s", s.Name, s.Declared.Starves, said)
		}
	}
}

// TestStepsFindTheKnee has a shop that serves a hundred requests a second.
func TestStepsFindTheKnee(t *testing.T) {
	shape, err := load.ParseShape("50,100,200/2s")
	if err != nil {
		t.Fatal(err)
	}
	a := attackOf(Options{Shape: shape})
	a.begun = time.Now()
	free := a.begun
	requests, _ := shape.Total()
	for n := range requests {
		scheduled := a.begun.Add(shape.Due(n))
		if free.Before(scheduled) {
			free = scheduled
		}
		free = free.Add(10 * time.Millisecond)
		outcome := load.Sold
		if n == requests-1 {
			outcome = load.SoldOut
		}
		a.customers.hits = append(a.customers.hits, &Customer{number: n, scheduled: scheduled,
			Answer: load.Answer{Outcome: outcome, Status: http.StatusCreated, Sent: scheduled, Latency: free.Sub(scheduled)}})
	}
	steps := a.steps()
	if len(steps) != 3 || !steps[0].KeptUp || !steps[1].KeptUp || steps[2].KeptUp {
		t.Fatalf("steps %+v, want three, of which the last does not keep up", steps)
	}
	if s := steps[2]; s.Requests != 400 || s.Sold != 399 || s.SoldOut != 1 || s.SalesPerSecond < 95 || s.SalesPerSecond > 105 || s.Latency.P99 < 1900 {
		t.Errorf("the last step %+v, want 400 requests, about 100 sales a second, and late answers", s)
	}
	if got := a.ranOut(); got < 5900*time.Millisecond || got > 8100*time.Millisecond {
		t.Errorf("the stock ran out after %s", got)
	}
}

// TestADegradedCellOfATopology says how long it took.
func TestADegradedCellOfATopology(t *testing.T) {
	r := Result{Group: "async", Verdict: verdict.Held, InitialStock: 2, Sold: 1, Remaining: 1, Seconds: 3}
	if said := r.Shown().Reason(r.Facts()).String(); said != "sold 1 of 2 in 3 s, with demand left" {
		t.Errorf("it says %q", said)
	}
}

// TestADescribedServiceIsOnNoTopology, whose customers were promised nothing by servers that fail over.
func TestADescribedServiceIsOnNoTopology(t *testing.T) {
	for group, want := range map[string]bool{"galera": true, OneServer: false, Baskets: false, Reservations: false, Described: false} {
		if r := (Result{Group: group}); r.OnTopology() != want {
			t.Errorf("a result of the group %q is on a topology: %v", group, !want)
		}
	}
}

func TestFaultsAreInTheOrderOfTheirBeginnings(t *testing.T) {
	began := time.Now()
	var e explain.Evidence
	e.Began, e.Ended = began, began.Add(time.Second)
	for _, at := range []time.Duration{1800, 0, 900} { // each within a millisecond of the next
		e.Interventions = append(e.Interventions, explain.Intervention{What: explain.Dead, From: began.Add(at * time.Microsecond)})
	}
	faults := timeline(e, nil).Faults
	if !slices.IsSortedFunc(faults, func(a, b Period) int { return cmp.Compare(a.FromMS, b.FromMS) }) || len(faults) != 3 {
		t.Errorf("the faults are in the order %+v", faults)
	}
}
