package measure

import (
	"fmt"
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"

	"stocklock/bench/worker"
)

// Sample is the result of one trial. Times are in milliseconds unless the comment of a field names
// another unit. A number that does not apply to the lock or the section is NaN.
type Sample struct {
	HoldsPerSecond float64
	WaitP50        float64
	WaitP99        float64
	WaitMax        float64
	Jain           float64 // over all goroutines
	Requests       float64 // to Redis or etcd, per hold; for locks that are kept, per lease of all locks
	Bytes          float64 // between the lock and its servers, per the same unit
	RedisCPU       float64 // in microseconds, per the same unit
	Allocs         float64 // per the same unit, less those of the section
	Pair           float64 // in microseconds: one acquisition and release
	OfRaw          float64 // Pair, divided by the same for Raw
	RoundTrip      float64 // in microseconds: a PING of one client before the trial, the median
	LostUpdates    float64
	Errors         float64
	Example        string // one of the errors
}

// Failed returns the sample of a failed trial.
func Failed(err error) Sample {
	s := unmeasured()
	s.Errors, s.Example = 1, err.Error()
	return s
}

func unmeasured() Sample {
	nan := math.NaN()
	return Sample{nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, 0, ""}
}

// merge combines the results of the processes. Counted is the final value of the counter.
func merge(t Trial, results []worker.Result, used usage, counted int64) (Sample, error) {
	if t.Shape.Pairs {
		return pairsOf(results[0]), nil
	}
	waits := worker.NewWaits()
	s := Sample{Pair: math.NaN(), OfRaw: math.NaN(), RoundTrip: math.NaN()}
	var shares []int64
	var total, added, inTime int64
	var allocs float64
	for _, r := range results {
		h, err := hdrhistogram.Decode(r.Waits)
		if err != nil {
			return Sample{}, fmt.Errorf("a worker's histogram: %w", err)
		}
		waits.Merge(h)
		shares = append(shares, r.Holds...)
		total += r.Total
		added += r.Added
		allocs += r.Allocs
		s.Errors += float64(r.Errors)
		if s.Example == "" {
			s.Example = r.Example
		}
	}
	for _, n := range shares {
		inTime += n
	}
	per := float64(total)
	s.HoldsPerSecond = float64(inTime) / t.For.Seconds()
	s.WaitP50, s.WaitP99, s.WaitMax = milliseconds(waits.ValueAtQuantile(50)), milliseconds(waits.ValueAtQuantile(99)), milliseconds(waits.Max())
	s.Jain = Jain(shares)
	if t.Shape.Hold > 0 {
		per = t.For.Seconds() / t.Lease.Seconds()
		s.HoldsPerSecond, s.WaitP50, s.WaitP99, s.WaitMax, s.Jain = math.NaN(), math.NaN(), math.NaN(), math.NaN(), math.NaN()
	}
	s.Allocs = allocs / per
	s.Requests, s.Bytes, s.RedisCPU = used.requests/per, used.bytes/per, used.cpu/per
	if t.Lock.Local {
		s.Requests, s.Bytes, s.RedisCPU = 0, 0, 0
	}
	s.LostUpdates = math.NaN()
	if t.Section.Counts && t.Shape.Hold == 0 {
		s.LostUpdates = float64(added - counted)
	}
	return s, nil
}

// pairsOf returns the sample of a trial of pairs, which measures nothing else.
func pairsOf(r worker.Result) Sample {
	s := unmeasured()
	s.Pair, s.OfRaw = float64(r.Pair.Nanoseconds())/1000, float64(r.Pair)/float64(r.Beside)
	return s
}

func milliseconds(us int64) float64 { return float64(us) / 1000 }
