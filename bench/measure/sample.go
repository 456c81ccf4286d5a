package measure

import (
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/perf/benchfmt"

	"stocklock/bench/worker"
)

// Sample is the result of one trial. A number that does not apply to the lock or the section is not
// among its values: see [Units].
type Sample struct {
	Operations int
	Values     []benchfmt.Value
	Example    string // one of the errors
}

func (s *Sample) add(v float64, unit string) {
	s.Values = append(s.Values, benchfmt.Value{Value: v, Unit: unit})
}

// Failed returns the sample of a failed trial.
func Failed(err error) Sample {
	s := Sample{Example: err.Error()}
	s.add(1, ErrorsUnit)
	return s
}

// merge combines the results of the processes. Counted is the final value of the counter.
func merge(t Trial, results []worker.Result, used usage, counted int64) (Sample, error) {
	waits := worker.NewWaits()
	var s Sample
	var shares []int64
	var added, inTime, failed int64
	var allocs float64
	for _, r := range results {
		h, err := hdrhistogram.Decode(r.Waits)
		if err != nil {
			return Sample{}, fmt.Errorf("a worker's histogram: %w", err)
		}
		waits.Merge(h)
		shares = append(shares, r.Holds...)
		s.Operations += int(r.Total)
		added += r.Added
		allocs += r.Allocs
		failed += r.Errors
		if s.Example == "" {
			s.Example = r.Example
		}
	}
	for _, n := range shares {
		inTime += n
	}
	if t.Shape.Hold > 0 {
		s.Operations = int(t.For / t.Lease)
	} else {
		s.add(float64(inTime)/t.For.Seconds(), Rate)
		s.add(seconds(waits.ValueAtQuantile(50)), "p50-sec")
		s.add(seconds(waits.ValueAtQuantile(99)), "p99-sec")
		s.add(seconds(waits.Max()), "max-sec")
		s.add(jain(shares), "jain")
	}
	per := float64(max(s.Operations, 1))
	if t.Lock.Local {
		used = usage{}
	}
	s.add(used.requests/per, Requests)
	s.add(used.bytes/per, "net-B/op")
	s.add(used.cpu/per, "redis-sec/op")
	s.add(allocs/per, "allocs/op")
	if t.Section.Counts && t.Shape.Hold == 0 {
		s.add(float64(added-counted), LostUnit)
	}
	s.add(float64(failed), ErrorsUnit)
	return s, nil
}

// pairsOf returns the sample of a trial of pairs, which measures nothing else.
func pairsOf(r worker.Result) Sample {
	s := Sample{Operations: int(r.Total)}
	s.add(r.Pair.Seconds(), "sec/op")
	s.add(float64(r.Pair)/float64(r.Beside[0]), "of-raw")
	s.add(float64(r.Pair)/float64(r.Beside[1]), "of-bsm")
	return s
}

func seconds(us int64) float64 { return float64(us) / 1e6 }

// jain returns Jain's fairness index: 1 when all shares are equal, 1/n when one of n shares has
// everything, and 1 when all shares are zero.
func jain(shares []int64) float64 {
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
