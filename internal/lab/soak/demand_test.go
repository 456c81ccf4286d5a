package soak

import (
	"testing"
	"time"

	"stocklock/internal/lab/load"
)

// TestTheWindowOfADemand has the times of answers, by which nothing may be left out or taken for more than it is.
func TestTheWindowOfADemand(t *testing.T) {
	const each = time.Second
	type answers struct {
		n          int
		sent, took time.Duration
		outcome    load.Outcome
	}
	for _, test := range []struct {
		name  string
		all   []answers
		lines int
		want  Supply
		over  bool
	}{
		{"a sale that ends after the window", []answers{
			{99, each / 2, each / 100, load.Sold}, {1, each / 2, 3 * each / 2, load.Sold}}, 1, Supply{Sold: 99, Orders: 99, P99: each / 100}, true},
		{"more of them", []answers{
			{9, each / 2, each / 100, load.Sold}, {1, each / 2, 3 * each / 2, load.Sold}}, 1, Supply{Sold: 9, Orders: 9, P99: 3 * each / 2}, true},
		{"before and after", []answers{
			{5, -each, each / 2, load.Sold}, {1, 0, each / 2, load.Sold}, {5, 2 * each, each / 2, load.Sold}}, 1, Supply{Sold: 1, Orders: 1, P99: each / 2}, true},
		{"a long one of before", []answers{
			{1, -each / 2, each, load.Sold}, {1, each / 2, each / 10, load.Sold}}, 1, Supply{Sold: 2, Orders: 2, P99: each / 10}, false},
		{"none but of before", []answers{{1, -each / 2, each, load.Sold}}, 1, Supply{Sold: 1, Orders: 1, P99: each}, false},
		{"nothing for long, and then much", []answers{
			{3, 0, 3 * each / 2, load.Busy}, {1, each, each, load.Sold}, {99, 2 * each, each / 10, load.Sold}}, 1,
			Supply{Sold: 100. / 3, Orders: 100. / 3, Rejected: 1, P99: each / 10}, false},
		{"orders of twenty lines", []answers{
			{1, 0, each / 2, load.Sold}, {1, 0, each / 2, load.Busy}}, 20, Supply{Sold: 20, Orders: 1, Rejected: 1, P99: each / 2}, false},
		{"never", []answers{{1, 0, longestMeasure, load.Busy}, {1, each, longestMeasure, load.Sold}}, 1, Supply{Rejected: 1 / longestMeasure.Seconds(), P99: longestMeasure}, true},
	} {
		w, over := window{each: each, end: each}, false
		for _, a := range test.all {
			for range a.n {
				over = w.answered(load.Answer{Outcome: a.outcome, Latency: a.took}, a.sent)
			}
		}
		got := w.supply(test.lines)
		if got != test.want || over != test.over {
			t.Errorf("%s: %+v, over %t, want %+v, over %t", test.name, got, over, test.want, test.over)
		}
	}
}
