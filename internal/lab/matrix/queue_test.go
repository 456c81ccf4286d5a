package matrix

import (
	"testing"

	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
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
