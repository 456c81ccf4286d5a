package main

import (
	"fmt"
	"math"
	"strings"

	"stocklock/bench/lock"
	"stocklock/bench/measure"
)

// target is a bound that this repository's lock should meet within one run.
type target struct {
	what    string
	atLeast bool // bound is a minimum; otherwise it is a maximum
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

// targetsOf returns the targets that were measured.
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
			add(cell+": holds/s relative to the mutex", true, 0.90, share)
			add(cell+": Jain", true, 0.99, jain)
			add(cell+": longest wait, in fair shares", false, 3, fairShares(r))
		case cell == "4x8 redis":
			add(cell+": holds/s relative to the mutex", true, 0.80, share)
			add(cell+": Jain", true, 0.95, jain)
			add(cell+": longest wait, in fair shares", false, 10, fairShares(r))
		case r.Shape.Processes > 1 && r.Shape.Goroutines == 1 && r.Section.Name == "redis" && r.Shape.Delay == 0:
			if r.Shape.Name == "8x1/1ms" {
				add(cell+": holds/s relative to the best peer", true, 2, bestPeer(r))
			}
			add(cell+": requests per hold", false, 2.1, requests)
		case r.Shape.Pairs:
			add(cell+": latency relative to SET NX PX and compare-and-delete", false, 1.10, r.Lock(ours).Of(ofRaw))
		case cell == "hold-1000 empty":
			add(cell+": renewal requests per lease", false, 4000, requests)
		case cell == "4x8+500us redis":
			add(cell+": holds/s relative to the best peer", true, 2, bestPeer(r))
		}
	}
	for _, s := range shop {
		switch [2]string{s.Strategy, s.Against} {
		case [2]string{"reentrant", "for-update"}:
			add("shop, 3 processes: sales/s relative to for-update", true, 1.0, s.Sales)
			add("shop, 3 processes: p99 relative to for-update", false, 1.0, s.P99)
		case [2]string{"reentrant", "mutex"}:
			add("shop, 1 process: sales/s relative to mutex", true, 0.95, s.Sales)
		}
	}
	return all
}

// fairShares returns the longest wait in each repetition. Its unit is the wait of a goroutine if
// all of them took turns under the mutex.
func fairShares(r measure.Results) []float64 {
	longest, mutex := r.Lock(ours).Of(func(s measure.Sample) float64 { return s.WaitMax }), r.Lock(limit).Of(rate)
	var shares []float64
	for i := range min(len(longest), len(mutex)) {
		turn := 1000 / mutex[i] // milliseconds
		shares = append(shares, longest[i]/(turn*float64(r.Shape.Processes*r.Shape.Goroutines)))
	}
	return shares
}

// bestPeer returns the holds per second relative to the fastest peer of each repetition.
func bestPeer(r measure.Results) []float64 {
	var ratios []float64
	for i, mine := range r.Lock(ours).Of(rate) {
		best := 0.0
		for _, l := range r.Locks {
			if l.Lock == ours || lock.All[lock.Place(l.Lock)].Local || strings.HasPrefix(l.Lock, "none") || i >= len(l.Samples) {
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
