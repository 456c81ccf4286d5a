package measure

import (
	"math"
	"testing"
)

func TestJain(t *testing.T) {
	for _, test := range []struct {
		name   string
		shares []int64
		want   float64
	}{
		{"all have the same", []int64{7, 7, 7, 7}, 1},
		{"one has all", []int64{12, 0, 0, 0}, 0.25},
		{"half of them share all", []int64{5, 5, 0, 0}, 0.5},
		{"nobody has anything", []int64{0, 0}, 1},
		{"uneven", []int64{1, 2, 3}, 36.0 / (3 * 14)},
	} {
		if got := Jain(test.shares); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%s: Jain(%v) = %v, want %v", test.name, test.shares, got, test.want)
		}
	}
}

func TestSpreadOf(t *testing.T) {
	nan := math.NaN()
	for _, test := range []struct {
		name   string
		values []float64
		want   Spread
	}{
		{"odd", []float64{3, 1, 2}, Spread{2, 1, 3}},
		{"even", []float64{4, 1, 3, 2}, Spread{2.5, 1, 4}},
		{"one", []float64{5}, Spread{5, 5, 5}},
		{"not all were measured", []float64{nan, 2, nan, 4}, Spread{3, 2, 4}},
	} {
		if got := SpreadOf(test.values); got != test.want {
			t.Errorf("%s: SpreadOf(%v) = %v, want %v", test.name, test.values, got, test.want)
		}
	}
	if got := SpreadOf(nil); !math.IsNaN(got.Median) {
		t.Errorf("SpreadOf(nil) = %v, want NaN", got)
	}
}

func TestRatiosAreTakenWithinARepetition(t *testing.T) {
	var r Results
	// The machine is twice as slow in the second repetition. The ratio must not change.
	for _, rate := range []float64{1000, 500} {
		r.Add("limit", Sample{HoldsPerSecond: rate})
		r.Add("lock", Sample{HoldsPerSecond: rate / 4})
	}
	got := SpreadOf(r.Ratio("lock", "limit", func(s Sample) float64 { return s.HoldsPerSecond }))
	if want := (Spread{0.25, 0.25, 0.25}); got != want {
		t.Errorf("ratio %v, want %v", got, want)
	}
	if got := r.Ratio("lock", "not measured", func(s Sample) float64 { return s.HoldsPerSecond }); len(got) != 0 {
		t.Errorf("ratio to a lock without samples: %v", got)
	}
}
