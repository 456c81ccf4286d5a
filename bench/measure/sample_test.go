package measure

import (
	"math"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"stocklock/bench/lock"
	"stocklock/bench/section"
	"stocklock/bench/worker"
)

func TestMergeAddsUpAllProcesses(t *testing.T) {
	waits := func(ms ...int64) []byte {
		h := worker.NewWaits()
		for _, n := range ms {
			h.RecordValue(n * 1000)
		}
		encoded, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err != nil {
			t.Fatal(err)
		}
		return encoded
	}
	trial := Trial{Lock: lock.Lock{Name: "a lock"}, Shape: Shape{Processes: 2, Goroutines: 2}, Section: section.Section{Counts: true}, For: 2 * time.Second, Lease: time.Second}
	results := []worker.Result{
		{Holds: []int64{10, 30}, Total: 41, Added: 41, Waits: waits(1, 2, 3), Allocs: 100},
		{Holds: []int64{20, 20}, Total: 39, Added: 38, Waits: waits(4, 500), Allocs: 60, Errors: 1, Example: "work: no"},
	}
	got, err := merge(trial, results, usage{requests: 160, bytes: 800, cpu: 400}, 75)
	if err != nil {
		t.Fatal(err)
	}
	want := Sample{
		HoldsPerSecond: 40, WaitP50: 3, WaitP99: 500, WaitMax: 500, Jain: 6400.0 / (4 * 1800),
		Requests: 2, Bytes: 10, RedisCPU: 5, Allocs: 2, LostUpdates: 4, Errors: 1, Example: "work: no",
	}
	for _, wait := range []*float64{&got.WaitP50, &got.WaitP99, &got.WaitMax} {
		*wait = math.Round(*wait) // the histogram keeps three digits
	}
	if !math.IsNaN(got.Pair) || !math.IsNaN(got.OfRaw) || !math.IsNaN(got.RoundTrip) {
		t.Errorf("a lock that was not taken in turn with another took %g µs, %g of the other; a round trip that was not measured %g µs", got.Pair, got.OfRaw, got.RoundTrip)
	}
	got.Pair, got.OfRaw, got.RoundTrip = 0, 0, 0
	if got != want {
		t.Errorf("merged\n%+v, want\n%+v", got, want)
	}

	trial.Shape.Hold = 1000
	got, err = merge(trial, results, usage{requests: 160}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got.Requests != 80 || !math.IsNaN(got.HoldsPerSecond) || !math.IsNaN(got.LostUpdates) {
		t.Errorf("160 requests in two leases of locks that were kept: %+v", got)
	}

	results[0].Waits = []byte("none")
	if _, err := merge(trial, results, usage{}, 0); err == nil {
		t.Error("a histogram that is none was taken for one")
	}
}
