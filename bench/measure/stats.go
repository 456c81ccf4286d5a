package measure

import (
	"math"
	"slices"
)

// Jain returns Jain's fairness index: 1 when all shares are equal, 1/n when one of n shares has
// everything, and 1 when all shares are zero.
func Jain(shares []int64) float64 {
	var sum, squares float64
	for _, s := range shares {
		sum += float64(s)
		squares += float64(s) * float64(s)
	}
	if squares == 0 {
		return 1
	}
	return sum * sum / (float64(len(shares)) * squares)
}

// Spread summarizes repeated measurements of the same number. Without measurements all fields are
// NaN.
type Spread struct{ Median, Min, Max float64 }

// SpreadOf ignores NaN, which stands for a number that was not measured.
func SpreadOf(values []float64) Spread {
	v := slices.DeleteFunc(slices.Sorted(slices.Values(values)), math.IsNaN)
	if len(v) == 0 {
		return Spread{math.NaN(), math.NaN(), math.NaN()}
	}
	middle := v[len(v)/2]
	if len(v)%2 == 0 {
		middle = (v[len(v)/2-1] + middle) / 2
	}
	return Spread{middle, v[0], v[len(v)-1]}
}
