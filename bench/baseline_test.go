package main

import (
	"bytes"
	"fmt"
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
		wrong bool // nothing is compared
	}{
		{"the same", tableOf(2, 2.01, 2), 0, "2 numbers, 0 worse", false},
		{"more", tableOf(2.5, 2.6, 2.5), 1, "worse", false},
		{"fewer", tableOf(1.5, 1.6, 1.5), 0, "better", false},
		{"certainly more, but hardly", tableOf(2.05, 2.06, 2.05), 0, "2 numbers, 0 worse", false},
		{"once more", tableOf(2, 3, 2), 0, "2 numbers, 0 worse", false},
		{"too few", tableOf(9), 0, "of 2 of them there are too few repetitions to tell", true},
		{"a table that was not measured", nil, 0, "0 numbers", true},
	} {
		var out bytes.Buffer
		worse, err := printChanges(&out, "baseline.txt", baseline, test.now)
		if (err != nil) != test.wrong || worse != test.worse || !strings.Contains(out.String(), test.says) || strings.Contains(out.String(), "redsync") {
			t.Errorf("%s: %d worse, %v, want %d and %q:\n%s", test.name, worse, err, test.worse, test.says, &out)
		}
	}
}

// TestABaselineThatWasMeasuredOtherwise is not compared. That of another machine has no ratios, and versions say nothing.
func TestABaselineThatWasMeasuredOtherwise(t *testing.T) {
	on := func(tables []measure.Table, keysAndValues ...string) []measure.Table {
		for _, row := range tables[0].Rows {
			for _, r := range row.Results {
				r.Config = measure.Configure(keysAndValues...)
			}
		}
		return tables
	}
	scale := func() []measure.Table { return scaleOf(1, 1.01, 1.02, 1, 1.01, 0.99) }
	locks := func() []measure.Table { return tableOf(2, 2.01, 2.02, 2, 2.01, 1.99) }
	for _, test := range []struct {
		of    func() []measure.Table
		now   []string
		says  string
		wrong bool
	}{
		{scale, []string{"cores", "2", "each", "5s"}, "each 1s, now 5s", true},
		{scale, []string{"cores", "8", "each", "1s"}, "cores 2, now 8", true},
		{locks, []string{"cores", "8", "each", "1s"}, "1 numbers, 0 worse", false},
		{scale, []string{"cores", "2", "go", "go1.27", "each", "1s", "etcd", "3.5"}, "go go1.26.8, now go1.27", false},
		{scale, []string{"mysql", "MySQL 8.4.3"}, "mysql MariaDB 10.11, now MySQL 8.4.3", false},
		{scale, nil, "1 numbers, 0 worse", false},
	} {
		var out bytes.Buffer
		baseline := on(test.of(), "cores", "2", "go", "go1.26.8", "each", "1s", "date", "2026-11-28", "etcd", "", "mysql", "MariaDB 10.11")
		_, err := printChanges(&out, "baseline.txt", baseline, on(test.of(), test.now...))
		if said := fmt.Sprint(&out, err); !strings.Contains(said, test.says) || (err != nil) != test.wrong {
			t.Errorf("%v: %s, want %q", test.now, said, test.says)
		}
	}
}
