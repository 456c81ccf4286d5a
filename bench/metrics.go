package main

import (
	"fmt"
	"math"

	"stocklock/bench/measure"
)

// The lock that the targets are for, and the lock that all others are compared with.
const (
	ours  = "stocklock"
	limit = "mutex"
)

// metric is one number of a sample, in the table and in JSON.
type metric struct {
	head string // of the column
	name string // in JSON
	of   func(measure.Sample) float64
	form string
}

func rate(s measure.Sample) float64 { return s.HoldsPerSecond }

var metrics = []metric{
	{"holds/s", "holds_per_second", rate, "%.0f"},
	{"p50 ms", "wait_p50_ms", func(s measure.Sample) float64 { return s.WaitP50 }, "%.2f"},
	{"p99 ms", "wait_p99_ms", func(s measure.Sample) float64 { return s.WaitP99 }, "%.1f"},
	{"max ms", "wait_max_ms", func(s measure.Sample) float64 { return s.WaitMax }, "%.0f"},
	{"Jain", "jain", func(s measure.Sample) float64 { return s.Jain }, "%.3f"},
	{"requests", "redis_requests", func(s measure.Sample) float64 { return s.Requests }, "%.2f"},
	{"bytes", "redis_bytes", func(s measure.Sample) float64 { return s.Bytes }, "%.0f"},
	{"Redis µs", "redis_cpu_us", func(s measure.Sample) float64 { return s.RedisCPU }, "%.0f"},
	{"allocs", "allocations", func(s measure.Sample) float64 { return s.Allocs }, "%.0f"},
}

// pairMetrics are the metrics of locks that are acquired alternately with another one.
var pairMetrics = []metric{
	{"µs", "pair_us", func(s measure.Sample) float64 { return s.Pair }, "%.0f"},
	{"of raw", "of_raw", ofRaw, "%.2f"},
}

// overMutex returns the microseconds a hold that a lock takes more than the mutex, in each repetition.
func overMutex(r measure.Results, lock string) []float64 {
	mine, mutex := r.Lock(lock).Of(rate), r.Lock(limit).Of(rate)
	var over []float64
	for i := range min(len(mine), len(mutex)) {
		over = append(over, 1e6/mine[i]-1e6/mutex[i])
	}
	return over
}

// inRoundTrips returns times in microseconds as round trips to Redis of the same repetition.
func inRoundTrips(r measure.Results, times []float64) []float64 {
	trips := r.Lock(limit).Of(func(s measure.Sample) float64 { return s.RoundTrip })
	var ratios []float64
	for i := range min(len(times), len(trips)) {
		ratios = append(ratios, times[i]/trips[i])
	}
	return ratios
}

// sectionOf returns how long the work under the lock takes: that of the mutex alone, which has no
// requests.
func sectionOf(r measure.Results) measure.Spread {
	var took []float64
	for _, holds := range r.Lock(limit).Of(rate) {
		took = append(took, 1e6/holds)
	}
	return measure.SpreadOf(took)
}

// roundTripOf returns how long a round trip to Redis takes.
func roundTripOf(r measure.Results) measure.Spread {
	return measure.SpreadOf(r.Lock(limit).Of(func(s measure.Sample) float64 { return s.RoundTrip }))
}

func ofRaw(s measure.Sample) float64 { return s.OfRaw }

// show formats a number. A number that was not measured is a dash.
func show(form string, v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	return fmt.Sprintf(form, v)
}

// sum skips NaN, which stands for a number that was not measured. Without any other number it is
// NaN.
func sum(values []float64) float64 {
	total, measured := 0.0, false
	for _, v := range values {
		if !math.IsNaN(v) {
			total, measured = total+v, true
		}
	}
	if !measured {
		return math.NaN()
	}
	return total
}
