package matrix

import (
	"errors"
	"testing"

	"stocklock/internal/lab/bench"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/stock"
)

func TestMergeShowsTheMedian(t *testing.T) {
	run := func(seed uint64, sales float64) trial.Result {
		return trial.Result{Seed: seed, SalesPerSecond: sales, Verdict: verdict.Held, Expected: verdict.Held, Agreed: 1}
	}
	if got := merge([]trial.Result{run(1, 300), run(2, 50), run(3, 80)}); got.Seed != 3 || got.Runs != 3 || got.Agreed != 3 {
		t.Errorf("merge shows the run with seed %d, want 3, which has the median of sales per second", got.Seed)
	}
}

func TestMergeShowsTheSurprise(t *testing.T) {
	good := trial.Result{Seed: 1, Verdict: verdict.Held, Expected: verdict.Held, Agreed: 1, Seconds: 1}
	bad := trial.Result{Seed: 2, Verdict: verdict.Oversold, Expected: verdict.Held, Seconds: 1}
	got := merge([]trial.Result{good, bad, good})
	if got.Seed != 2 || got.Runs != 3 || got.Agreed != 2 || got.Seconds != 3 || !got.Surprise() {
		t.Errorf("merge = %+v, want the surprising run, 2 of 3 agreed", got)
	}
}

// TestAProofComesBeforeAnInvalidRun, whichever ran first.
func TestAProofComesBeforeAnInvalidRun(t *testing.T) {
	run := func(seed uint64, of verdict.Kind) trial.Result {
		return trial.Result{Seed: seed, Verdict: of, Expected: verdict.Held}
	}
	invalid, good, bad, worse := run(1, verdict.Invalid), run(2, verdict.Held), run(3, verdict.Oversold), run(4, verdict.Twice)
	for i, tt := range []struct {
		runs []trial.Result
		want uint64
	}{
		{[]trial.Result{invalid, good, bad}, 3}, {[]trial.Result{bad, good, invalid}, 3}, {[]trial.Result{invalid, worse, bad}, 4},
		{[]trial.Result{bad, worse, good}, 3}, {[]trial.Result{good, run(5, verdict.Invalid), invalid}, 5},
	} {
		if got := merge(tt.runs); got.Seed != tt.want {
			t.Errorf("case %d: merge shows the run with seed %d, want %d", i, got.Seed, tt.want)
		}
	}
}

// TestAReportWithoutAPartIsInterrupted: the servers of the second one were not started.
func TestAReportWithoutAPartIsInterrupted(t *testing.T) {
	failed := errors.New("no servers")
	r, err := joined([]Plan{{Runs: 1}, {Runs: 2}, {Runs: 3}}, func(part Plan) (report.Report, error) {
		if part.Runs == 1 {
			return report.Report{Cells: []trial.Result{{Strategy: "none"}}}, nil
		}
		return report.Report{}, failed
	})
	if err != failed || !r.Interrupted || len(r.Cells) != 1 {
		t.Errorf("%+v, %v, want the cells of the first part, interrupted", r, err)
	}
}

// TestASlowRateEndsItsCells: a cell has seen enough when as many in a row came to nothing as there are customers.
func TestASlowRateEndsItsCells(t *testing.T) {
	p := Plan{Pairs: []Pair{{Scenario: trial.Scenario{Name: "pause"}}}, Shape: load.Steady(5)}
	if got := p.Completed().options().Workers; got != DefaultWorkers {
		t.Errorf("%d in a row end a cell, want %d", got, DefaultWorkers)
	}
}

// TestShopsStayBelowMaxConnections: MySQL's own default is 151.
func TestShopsStayBelowMaxConnections(t *testing.T) {
	for _, p := range []Plan{
		{Shops: 3, Parallel: 1}, {Shops: 3, Parallel: 4}, {Shops: 3, Parallel: 4, calm: &Plan{Shops: 3}}, {Shops: 30, Parallel: 1},
	} {
		shops := p.Shops * p.Parallel
		if p.calm != nil {
			shops += p.calm.Shops
		}
		for _, most := range []int{151, 1000} {
			pool, err := p.poolSize(most)
			switch sum := (pool+2)*shops + bench.PoolSize; {
			case err == nil && (sum > most || pool < smallestPool || pool > stock.PoolSize):
				t.Errorf("%d shops with %d connections each, of %d", shops, pool, most)
			case (err != nil) != (shops == 30 && most == 151):
				t.Errorf("%d shops, %d connections: %v", shops, most, err)
			}
		}
	}
}

// TestMoreIsAskedThanThereIs by a rate with an end, also beside cells that go on until all is sold.
func TestMoreIsAskedThanThereIs(t *testing.T) {
	pause, contention := trial.Scenario{Name: "pause"}, trial.Scenario{Name: trial.Contention, Comparable: true}
	shape, err := load.ParseShape("100/200ms")
	if err != nil {
		t.Fatal(err)
	}
	for _, pairs := range [][]Pair{{{Scenario: contention}}, {{Scenario: pause}, {Scenario: contention}}} {
		p := Plan{Pairs: pairs, Shape: shape}.Completed()
		if of := p.Of(contention); of.Requests != 20 || of.Stock != 18 {
			t.Errorf("%d requests for %d units, want 20 for 18", of.Requests, of.Stock)
		}
	}
}

// TestComparableCellsKeepTheirConditions, which are not those of the cells beside them.
func TestComparableCellsKeepTheirConditions(t *testing.T) {
	pause, contention := trial.Scenario{Name: "pause"}, trial.Scenario{Name: trial.Contention, Comparable: true}
	p := Plan{Pairs: []Pair{{Scenario: pause}, {Scenario: contention}}}.Completed()
	for _, tt := range []struct {
		sc   trial.Scenario
		want trial.Conditions
	}{
		{pause, trial.Conditions{LeaseMS: 500, WaitMS: 375, RetryMS: 2}}, {contention, trial.Conditions{LeaseMS: 10000, WaitMS: 5000, RetryMS: 2, WorkMS: 10}},
	} {
		if got := p.Of(tt.sc).options().Conditions; got != tt.want {
			t.Errorf("%s runs with %+v, want %+v", tt.sc.Name, got, tt.want)
		}
		session := &Session{&testbeds{plan: p, calm: &trial.Bench{}}}
		if got := session.Options(tt.sc).Conditions; got != tt.want {
			t.Errorf("in a session, %s runs with %+v, want %+v", tt.sc.Name, got, tt.want)
		}
	}
}
