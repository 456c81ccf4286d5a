package main

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/perf/benchfmt"

	"stocklock/bench/measure"
)

// tableOf is a table of ours and of another lock, with these numbers of requests.
func tableOf(requests ...float64) []measure.Table {
	var results []*benchfmt.Result
	for _, v := range requests {
		for _, name := range []string{measure.Ours, "redsync"} {
			s := measure.Sample{Values: []benchfmt.Value{{Value: v, Unit: measure.Requests}, {Value: 1, Unit: measure.OfMutex}, {Value: v, Unit: "max-sec"}}}
			results = append(results, measure.NewResult("Hold/shape=8x1/section=redis", name, nil, s))
		}
	}
	return measure.Tables(results)
}

// scaleOf is a scale whose second row has these ratios.
func scaleOf(ratios ...float64) []measure.Table {
	var results []*benchfmt.Result
	for _, v := range ratios {
		s := measure.Sample{Values: []benchfmt.Value{{Value: v, Unit: measure.OfFirst}, {Value: v, Unit: unitsSold}}}
		results = append(results, measure.NewResult("Scale/items/sold", "64_items", nil, s))
	}
	return measure.Tables(results)
}

func TestChangesBeyondNoise(t *testing.T) {
	baseline := tableOf(2, 2.01, 2.02, 2, 2.01, 1.99)
	for _, test := range []struct {
		name  string
		now   []measure.Table
		worse int
		says  string
	}{
		{"the same", tableOf(2, 2.01, 2), 0, "2 numbers, 0 worse"},
		{"more", tableOf(2.5, 2.6, 2.5), 1, "worse"},
		{"fewer", tableOf(1.5, 1.6, 1.5), 0, "better"},
		{"certainly more, but hardly", tableOf(2.05, 2.06, 2.05), 0, "2 numbers, 0 worse"},
		{"once more", tableOf(2, 3, 2), 0, "2 numbers, 0 worse"},
		{"too few", tableOf(9), 0, "of 2 of them there are too few repetitions to tell"},
		{"a table that was not measured", nil, 0, "0 numbers, 0 worse"},
	} {
		var out bytes.Buffer
		worse := printChanges(&out, "baseline.txt", baseline, test.now)
		if worse != test.worse || !strings.Contains(out.String(), test.says) || strings.Contains(out.String(), "redsync") {
			t.Errorf("%s: %d worse, want %d and %q:\n%s", test.name, worse, test.worse, test.says, &out)
		}
	}
}
