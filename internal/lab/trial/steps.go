package trial

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/words"
)

// Step is a part of a load whose rate changes. Requests count in the step in which they were to be
// sent.
type Step struct {
	FromMS         float64 `json:"from_ms"`
	ToMS           float64 `json:"to_ms"`
	Rate           float64 `json:"rate"` // requests a second, on average
	Requests       int64   `json:"requests"`
	Sold           int64   `json:"sold"`
	SoldOut        int64   `json:"sold_out"`
	Busy           int64   `json:"busy"`
	SalesPerSecond float64 `json:"sales_per_second"` // of the answers within the step
	Latency        Latency `json:"latency_ms"`       // of its sales, from the scheduled time
	KeptUp         bool    `json:"kept_up"`
}

// A step keeps up when nearly all of its requests are served, and the requests without an answer
// hardly grow in number meanwhile.
const (
	servedAtLeast   = 0.95
	backlogGrowsTo  = 0.10 // of the step's requests
	smallestBacklog = 2    // requests that are always under way
)

// steps counts the parts of the load.
func (a *attack) steps() []Step {
	var steps []Step
	for _, part := range a.o.Shape.Steps() {
		s := Step{FromMS: words.Rounded(part.From), ToMS: words.Rounded(part.To), Rate: round(part.Rate, 1)}
		from, to := a.begun.Add(part.From), a.begun.Add(part.To)
		within := func(t time.Time) bool { return !t.Before(from) && t.Before(to) }
		latencies := newHistogram()
		var answered, sales int64
		for _, h := range a.customers.hits {
			if h.late {
				continue
			}
			at := h.Sent.Add(h.Latency)
			if h.Status != 0 && within(at) {
				answered++
				if h.Outcome == load.Sold {
					sales++
				}
			}
			if within(h.scheduled) {
				s.count(h, at, latencies)
			}
		}
		s.SalesPerSecond, s.Latency = round(float64(sales)/part.Length().Seconds(), 1), percentiles(latencies)
		s.KeptUp = float64(s.Sold+s.SoldOut) >= servedAtLeast*float64(s.Requests) &&
			float64(s.Requests-answered) <= max(smallestBacklog, backlogGrowsTo*float64(s.Requests))
		steps = append(steps, s)
	}
	return steps
}

func (s *Step) count(h *Customer, answered time.Time, latencies *hdrhistogram.Histogram) {
	s.Requests++
	switch h.Outcome {
	case load.Sold:
		s.Sold++
		observe(latencies, answered.Sub(h.scheduled))
	case load.SoldOut:
		s.SoldOut++
	case load.Busy:
		s.Busy++
	}
}

// ranOut is how long after the beginning the first answer said sold out, 0 for never.
func (a *attack) ranOut() time.Duration {
	var first time.Duration
	for _, h := range a.customers.hits {
		if at := h.Sent.Add(h.Latency).Sub(a.begun); h.Outcome == load.SoldOut && (first == 0 || at < first) {
			first = at
		}
	}
	return first
}
