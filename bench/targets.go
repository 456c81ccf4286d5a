package main

import (
	"fmt"
	"math"
	"strings"

	"stocklock/bench/lock"
	"stocklock/bench/measure"
)

// target is what our lock is to reach, as a ratio inside one run.
type target struct {
	what    string
	atLeast bool // or else at most
	bound   float64
	got     measure.Spread
}

func (t target) want() string {
	if t.atLeast {
		return fmt.Sprintf("≥ %g", t.bound)
	}
	return fmt.Sprintf("≤ %g", t.bound)
}

func (t target) met() bool {
	if t.atLeast {
		return t.got.Median >= t.bound
	}
	return t.got.Median <= t.bound
}

func (t target) verdict() string {
	if t.met() {
		return "met"
	}
	return "missed"
}

// targetsOf are those for which there are numbers.
func targetsOf(results []measure.Results, shop []shopRatio) []target {
	var all []target
	add := func(what string, atLeast bool, bound float64, values []float64) {
		if got := measure.SpreadOf(values); !math.IsNaN(got.Median) {
			all = append(all, target{what, atLeast, bound, got})
		}
	}
	for _, r := range results {
		cell := r.Shape.Name + " " + r.Section.Name
		share := r.Ratio(ours, limit, rate)
		requests := r.Lock(ours).Of(func(s measure.Sample) float64 { return s.Requests })
		jain := r.Lock(ours).Of(func(s measure.Sample) float64 { return s.Jain })
		switch {
		case cell == "1x32 redis":
			add(cell+": holds/s of the mutex's", true, 0.90, share)
			add(cell+": Jain", true, 0.99, jain)
			add(cell+": longest wait, in fair shares", false, 3, fairShares(r))
		case cell == "4x8 redis":
			add(cell+": holds/s of the mutex's", true, 0.80, share)
			add(cell+": Jain", true, 0.95, jain)
			add(cell+": longest wait, in fair shares", false, 10, fairShares(r))
		case r.Shape.Processes > 1 && r.Shape.Goroutines == 1 && r.Section.Name == "redis" && r.Shape.Delay == 0:
			if r.Shape.Name == "8x1/1ms" {
				add(cell+": holds/s of the best peer's", true, 2, bestPeer(r))
			}
			add(cell+": requests a hold", false, 2.1, requests)
		case r.Shape.Pairs:
			add(cell+": latency of SET NX PX and compare-and-delete", false, 1.10, r.Lock(ours).Of(ofRaw))
		case cell == "hold-1000 empty":
			add(cell+": renewal requests a lease", false, 4000, requests)
		case cell == "4x8+500us redis":
			add(cell+": holds/s of the best peer's", true, 2, bestPeer(r))
		}
	}
	for _, s := range shop {
		switch [2]string{s.Strategy, s.Against} {
		case [2]string{"reentrant", "for-update"}:
			add("shop, 3 processes: sales/s of for-update's", true, 1.0, s.Sales)
			add("shop, 3 processes: p99 of for-update's", false, 1.0, s.P99)
		case [2]string{"reentrant", "mutex"}:
			add("shop, 1 process: sales/s of mutex's", true, 0.95, s.Sales)
		}
	}
	return all
}

// fairShares is the longest wait, in what each would wait if all took turns under the mutex.
func fairShares(r measure.Results) []float64 {
	longest, mutex := r.Lock(ours).Of(func(s measure.Sample) float64 { return s.WaitMax }), r.Lock(limit).Of(rate)
	var shares []float64
	for i := range min(len(longest), len(mutex)) {
		turn := 1000 / mutex[i] // milliseconds
		shares = append(shares, longest[i]/(turn*float64(r.Shape.Processes*r.Shape.Goroutines)))
	}
	return shares
}

// bestPeer compares, in each repetition, with whoever was fastest in it.
func bestPeer(r measure.Results) []float64 {
	var ratios []float64
	for i, mine := range r.Lock(ours).Of(rate) {
		best := 0.0
		for _, l := range r.Locks {
			if l.Lock == ours || lock.All[place(l.Lock)].Local || strings.HasPrefix(l.Lock, "none") || i >= len(l.Samples) {
				continue
			}
			best = max(best, l.Samples[i].HoldsPerSecond)
		}
		if best > 0 {
			ratios = append(ratios, mine/best)
		}
	}
	return ratios
}
