package matrix

import (
	"cmp"
	"math"
	"slices"

	"stocklock/internal/lab/trial"
)

// merge makes one result of several runs of a cell: the first surprising run, or else the one with
// the median of sales per second, with the number of runs that went as expected.
func merge(runs []trial.Result) trial.Result {
	bySales := slices.SortedStableFunc(slices.Values(runs), func(a, b trial.Result) int {
		return cmp.Compare(a.SalesPerSecond, b.SalesPerSecond)
	})
	merged := bySales[(len(runs)-1)/2]
	for _, r := range runs {
		if r.Surprise() {
			merged = r
			break
		}
	}
	merged.Runs, merged.Agreed, merged.Seconds, merged.Spoiled = len(runs), 0, 0, nil
	for _, r := range runs {
		merged.Spoiled = append(merged.Spoiled, r.Spoiled...)
		merged.Agreed += r.Agreed
		merged.Seconds += r.Seconds
	}
	merged.Seconds = math.Round(merged.Seconds*100) / 100
	return merged
}
