package trial

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/words"
)

// Timeline is what happened over time, in bins of the same width. A request counts in the bin of
// its answer.
type Timeline struct {
	BinMS    float64                  `json:"bin_ms"`
	Outcomes map[load.Outcome][]int64 `json:"outcomes"`
	P50      []float64                `json:"p50_ms"` // 0 in a bin without answers
	P99      []float64                `json:"p99_ms"`
	Faults   []Period                 `json:"faults,omitempty"`
}

// Period is a time in which a fault was active, from the beginning of the attack.
type Period struct {
	FromMS float64    `json:"from_ms"`
	ToMS   float64    `json:"to_ms"`
	What   words.Text `json:"what"`
}

// Bucket counts the latencies up to a limit and above the limit of the bucket before.
type Bucket struct {
	UpToMS float64 `json:"up_to_ms"`
	Count  int64   `json:"count"`
}

// maxBins is about as many bins as a chart can show.
const maxBins = 60

// binWidth is the narrowest round width of which maxBins are enough.
func binWidth(d time.Duration) time.Duration {
	for unit := 10 * time.Millisecond; ; unit *= 10 {
		for _, width := range []time.Duration{unit, 2 * unit, 5 * unit} {
			if d < maxBins*width {
				return width
			}
		}
	}
}

func timeline(e explain.Evidence, hits []*Customer) Timeline {
	end := e.Ended
	for _, h := range hits {
		if answered := h.Sent.Add(h.Latency); answered.After(end) {
			end = answered
		}
	}
	took := end.Sub(e.Began)
	width := binWidth(took)
	n := int(took/width) + 1
	t := Timeline{BinMS: words.Rounded(width), Outcomes: map[load.Outcome][]int64{}, P50: make([]float64, n), P99: make([]float64, n)}
	latencies := make([]*hdrhistogram.Histogram, n)
	for _, h := range hits {
		if h.Sent.IsZero() || h.late {
			continue
		}
		bin := min(max(int(h.Sent.Add(h.Latency).Sub(e.Began)/width), 0), n-1)
		if t.Outcomes[h.Outcome] == nil {
			t.Outcomes[h.Outcome] = make([]int64, n)
		}
		t.Outcomes[h.Outcome][bin]++
		if h.Status == 0 {
			continue
		}
		if latencies[bin] == nil {
			latencies[bin] = newHistogram()
		}
		observe(latencies[bin], h.Latency)
	}
	for i, l := range latencies {
		if l != nil {
			p := percentiles(l)
			t.P50[i], t.P99[i] = p.P50, p.P99
		}
	}
	for _, f := range e.Periods() {
		t.Faults = append(t.Faults, Period{words.Rounded(f.From.Sub(e.Began)), words.Rounded(f.Until.Sub(e.Began)), f.What})
	}
	slices.SortFunc(t.Faults, func(a, b Period) int { return cmp.Compare(a.FromMS, b.FromMS) })
	return t
}

// distribution counts latencies in buckets, ten to each power of ten.
func distribution(h *hdrhistogram.Histogram) []Bucket {
	counts := map[int]int64{}
	lowest, highest := math.MaxInt, math.MinInt
	for _, bar := range h.Distribution() {
		if bar.Count == 0 {
			continue
		}
		step := int(math.Ceil(10 * math.Log10(float64(bar.To)/1000)))
		counts[step] += bar.Count
		lowest, highest = min(lowest, step), max(highest, step)
	}
	var buckets []Bucket
	for step := lowest; step <= highest; step++ {
		buckets = append(buckets, Bucket{UpToMS: round(math.Pow(10, float64(step)/10), 2), Count: counts[step]})
	}
	return buckets
}
