package measure

import (
	"maps"
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
	got, err := merge(trial, results, usage{requests: 160, bytes: 800, cpu: 0.04}, 75)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{
		Rate: 40, "p50-sec": 0.003, "p99-sec": 0.5, "max-sec": 0.5, "jain": 6400.0 / (4 * 1800),
		Requests: 2, "net-B/op": 10, "redis-sec/op": 0.0005, "allocs/op": 2, LostUnit: 4, ErrorsUnit: 1,
	}
	if values := valuesOf(got); !maps.EqualFunc(values, want, near) || got.Example != "work: no" || got.Operations != 80 {
		t.Errorf("merged %d operations, %q,\n%v, want\n%v", got.Operations, got.Example, values, want)
	}

	trial.Shape.Hold = 1000
	got, err = merge(trial, results, usage{requests: 160}, 0)
	if err != nil {
		t.Fatal(err)
	}
	want = map[string]float64{Requests: 80, "net-B/op": 0, "redis-sec/op": 0, "allocs/op": 80, ErrorsUnit: 1}
	if values := valuesOf(got); !maps.EqualFunc(values, want, near) || got.Operations != 2 {
		t.Errorf("160 requests in %d leases of locks that were kept: %v, want %v", got.Operations, values, want)
	}

	results[0].Waits = []byte("none")
	if _, err := merge(trial, results, usage{}, 0); err == nil {
		t.Error("a histogram that is none was taken for one")
	}
}

func valuesOf(s Sample) map[string]float64 {
	values := map[string]float64{}
	for _, v := range s.Values {
		values[v.Unit] = v.Value
	}
	return values
}

// near allows for the three digits that the histogram keeps.
func near(a, b float64) bool { return math.Abs(a-b) <= 0.01*math.Abs(b) }

func TestUsageCountsWhatTheLockSendsItself(t *testing.T) {
	info := map[string]string{
		"total_net_input_bytes": "100", "total_net_output_bytes": "20", "used_cpu_sys": "0.5", "used_cpu_user": "1.25",
		"cmdstat_set": "calls=7,usec=3,usec_per_call=0.4", "cmdstat_evalsha": "calls=5,usec=9", "cmdstat_del": "calls=4,usec=1",
	}
	got := usageIn(info, []string{"set", "evalsha", "eval"})
	if want := (usage{requests: 12, bytes: 120, cpu: 1.75}); got != want {
		t.Errorf("usage %+v, want %+v", got, want)
	}
	if got := got.since(usage{requests: 2, bytes: 20, cpu: 0.75}); got != (usage{10, 100, 1}) {
		t.Errorf("since then %+v", got)
	}
}
