package report

import (
	"errors"
	"fmt"
	"slices"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/trial"
)

// The limits of a drawing. Each span is compared with the others of its lane, and each step has a
// cell in every lane.
const (
	maxLanes = 100
	maxSpans = 10_000
)

// check finds values by which a form would index or divide out of range. It accepts unknown names
// of strategies and scenarios: the result of a newer program can still be read.
func (r Report) check() error {
	if len(r.Cells) == 0 && (r.Cells == nil || !r.Interrupted) {
		return errors.New("cells are missing: only an interrupted run has none")
	}
	seen := map[place]bool{}
	for i, c := range r.Cells {
		err := checkCell(c)
		if err == nil && seen[placeOf(c)] {
			err = fmt.Errorf("%s is there for a second time", c.Name())
		}
		if err != nil {
			return fmt.Errorf("cells[%d]: %w", i, err)
		}
		seen[placeOf(c)] = true
	}
	return nil
}

func checkCell(c trial.Result) error {
	for _, word := range []struct{ name, value string }{
		{"strategy", c.Strategy}, {"scenario", c.Scenario}, {"verdict", string(c.Verdict)}, {"expected", string(c.Expected)},
	} {
		if word.value == "" {
			return fmt.Errorf("%s is missing", word.name)
		}
	}
	if err := checkTimeline(c.Timeline); err != nil {
		return fmt.Errorf("timeline: %w", err)
	}
	if err := checkDistribution(c.Distribution); err != nil {
		return fmt.Errorf("distribution%w", err)
	}
	if c.Explanation == nil {
		return nil
	}
	if err := checkExplanation(c.Explanation); err != nil {
		return fmt.Errorf("explanation.%w", err)
	}
	return nil
}

// checkTimeline checks that all lists have the same number of bins.
func checkTimeline(t trial.Timeline) error {
	bins := len(t.P50)
	if len(t.P99) != bins {
		return fmt.Errorf("p50_ms has %s and p99_ms %d, want one for each bin", plural(bins, "value"), len(t.P99))
	}
	for outcome, counts := range t.Outcomes {
		if len(counts) != bins {
			return fmt.Errorf("outcomes.%s has %s and p50_ms %d, want one for each bin", outcome, plural(len(counts), "value"), bins)
		}
		if slices.ContainsFunc(counts, func(n int64) bool { return n < 0 }) {
			return fmt.Errorf("outcomes.%s has a count below 0", outcome)
		}
	}
	if bins > 0 && t.BinMS <= 0 {
		return fmt.Errorf("bin_ms is %g, want more than 0", t.BinMS)
	}
	return nil
}

// checkDistribution checks that limits have a logarithm and that they grow.
func checkDistribution(buckets []trial.Bucket) error {
	last := 0.0
	for i, b := range buckets {
		switch {
		case b.UpToMS <= 0:
			return fmt.Errorf("[%d]: up_to_ms is %g, want more than 0", i, b.UpToMS)
		case b.UpToMS < last:
			return fmt.Errorf("[%d]: up_to_ms is %g after %g, want limits that grow", i, b.UpToMS, last)
		case b.Count < 0:
			return fmt.Errorf("[%d]: count is %d, want 0 or more", i, b.Count)
		}
		last = b.UpToMS
	}
	return nil
}

func checkExplanation(x *explain.Explanation) error {
	if len(x.Lanes) > maxLanes {
		return fmt.Errorf("lanes: there are %d, want at most %d", len(x.Lanes), maxLanes)
	}
	for i, lane := range x.Lanes {
		if len(lane.Spans) > maxSpans {
			return fmt.Errorf("lanes[%d]: %d spans, want at most %d", i, len(lane.Spans), maxSpans)
		}
	}
	for i, s := range x.Steps {
		if min(s.Lane, s.To) < 0 || max(s.Lane, s.To) >= len(x.Lanes) {
			return fmt.Errorf("steps[%d]: from lane %d to %d, and there are %d lanes, counted from 0", i, s.Lane, s.To, len(x.Lanes))
		}
	}
	return nil
}
