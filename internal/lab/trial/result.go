package trial

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/strategy"
)

// Result is what a cell showed. Counts of orders come from SQL, counts of answers
// from the clients.
type Result struct {
	Strategy     string `json:"strategy"`
	Scenario     string `json:"scenario"`
	Seed         uint64 `json:"seed"`
	Runs         int    `json:"runs"`
	Agreed       int    `json:"agreed"` // runs whose verdict was the expected one
	Shops        int    `json:"shops"`
	InitialStock int64  `json:"initial_stock"`
	Requests     int64  `json:"requests"`

	Sold                int64 `json:"sold"`
	Remaining           int64 `json:"remaining"`
	Oversold            int64 `json:"oversold"`
	LostUpdates         int64 `json:"lost_updates"`
	Duplicates          int64 `json:"duplicates"`
	OrdersWithoutAnswer int64 `json:"orders_without_answer"`
	AnswersWithoutOrder int64 `json:"answers_without_order"` // must never be

	Answered int64 `json:"answered_sold"` // requests that were told that they bought
	Unknown  int64 `json:"unknown"`
	SoldOut  int64 `json:"sold_out"`
	Busy     int64 `json:"busy"`
	Fenced   int64 `json:"fenced"`
	Lost     int64 `json:"lost"`
	Conflict int64 `json:"conflict"`
	Refused  int64 `json:"refused"`
	Errors   int64 `json:"errors"`
	Strikes  int   `json:"strikes"` // faults that came to their point

	SalesPerSecond float64 `json:"sales_per_second"`
	Latency        Latency `json:"latency_ms"`           // of answered requests, from sent to answered
	Corrected      Latency `json:"latency_corrected_ms"` // from when they were due: differs at an open rate only

	Distribution []Bucket `json:"distribution,omitempty"`
	Timeline     Timeline `json:"timeline,omitzero"`
	CostPerSale  *Cost    `json:"cost_per_sale,omitempty"` // nil where it could not be counted

	Verdict  scenario.Kind `json:"verdict"`
	Expected scenario.Kind `json:"expected"`
	Because  string        `json:"because"` // of Expected: the property that the strategy has, or lacks
	Reason   string        `json:"reason,omitempty"`
	Spoiled  []string      `json:"spoiled,omitempty"` // why earlier tries of it said nothing
	Seconds  float64       `json:"seconds"`
	Replay   string        `json:"replay,omitempty"`

	Explanation *explain.Explanation `json:"explanation,omitempty"` // nil where nothing can be said

	guarded bool
	again   bool // running it again may help
}

// Latency holds percentiles in milliseconds.
type Latency struct {
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

// Cost is what one sale under contention cost the servers, until the stock was sold.
type Cost struct {
	Redis    float64 `json:"redis_requests"`
	Database float64 `json:"database_round_trips"`
}

func newResult(c Cell, o Options, shops int) Result {
	p := c.Strategy.PropertiesUnder(o.Options)
	return Result{
		Strategy: c.Strategy.Name, Scenario: c.Scenario.Name, Seed: c.Seed, Runs: 1, Shops: shops, InitialStock: o.Stock,
		Expected: c.Scenario.Expected(p), Because: c.Scenario.Because(p), guarded: c.Strategy.Guard != "nothing",
	}
}

func (r Result) skip(reason string) Result {
	r.Verdict, r.Reason = scenario.Skipped, reason
	return r
}

// spoil is an invalid result that another run of the same cell may be spared.
func (r Result) spoil(reason string) Result {
	r.again = true
	return r.invalid(reason)
}

func (r Result) invalid(reason string) Result {
	r.Verdict, r.Reason = scenario.Invalid, strings.TrimSpace(reason)
	return r
}

// Surprise says whether the cell did not do what its strategy's properties
// promise, in either direction. A cell that was skipped is none.
func (r Result) Surprise() bool { return r.Verdict != scenario.Skipped && r.Verdict != r.Expected }

// Comparable reports whether the scenario's numbers may be compared between strategies.
func (r Result) Comparable() bool { return r.scenario().Comparable }

// FixedLoad reports whether the scenario sends a fixed number of requests.
func (r Result) FixedLoad() bool { return r.scenario().FixedLoad }

// scenario is the zero value for one that this program does not know.
func (r Result) scenario() scenario.Scenario {
	s, _ := scenario.ByName(r.Scenario)
	return s
}

// fill counts the answers.
func (r *Result) fill(a *attack) {
	a.mu.Lock()
	defer a.mu.Unlock()
	seen, due := newHistogram(), newHistogram()
	var lastSale time.Time
	counts := map[Outcome]int64{}
	for _, h := range a.hits {
		if h.outcome == "" {
			h.outcome = Unknown // interrupted before its answer
		}
		counts[h.outcome]++
		if h.status != 0 {
			record(seen, h.latency)
			record(due, h.sent.Add(h.latency).Sub(h.due))
		}
		if h.outcome == Sold && h.sent.Add(h.latency).After(lastSale) {
			lastSale = h.sent.Add(h.latency)
		}
	}
	r.Requests, r.Strikes = int64(len(a.hits)), a.strikes
	r.Answered, r.Unknown, r.SoldOut, r.Busy = counts[Sold], counts[Unknown], counts[SoldOut], counts[Busy]
	r.Fenced, r.Lost, r.Conflict, r.Refused, r.Errors = counts[Fenced], counts[Lost], counts[Conflict], counts[Refused], counts[Failed]
	r.Latency, r.Corrected, r.Distribution = percentiles(seen), percentiles(due), distribution(seen)
	if cost, ok := a.usage.perSale(); ok {
		r.CostPerSale = &cost
	}
	if took := lastSale.Sub(a.begun).Seconds(); took > 0 {
		r.SalesPerSecond = round(float64(counts[Sold])/took, 1)
	}
}

// judge gives the verdict, from the database's counts.
func (r *Result) judge(a *attack) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case r.Verdict != "":
		return
	case r.AnswersWithoutOrder > 0:
		*r = r.invalid(fmt.Sprintf("%d requests were told that they bought, and have no order", r.AnswersWithoutOrder))
	case r.Duplicates > 0:
		*r = r.invalid(fmt.Sprintf("%d requests have more than one order", r.Duplicates))
	case r.Errors > 0:
		*r = r.invalid(fmt.Sprintf("%d answers that should not be, such as: %s", r.Errors, a.firstFailure()))
	case r.Oversold > 0:
		r.Verdict = scenario.Oversold
		r.Reason = fmt.Sprintf("%d orders for a stock of %d", r.Sold, r.InitialStock)
	case a.stuck && a.deserted() != "":
		*r = r.invalid(a.deserted())
	case a.stuck:
		r.Verdict = scenario.Stuck
		r.Reason = fmt.Sprintf("%d of %d left and wanted; %s", r.Remaining, r.InitialStock, a.waiting)
	case r.Remaining > 0:
		*r = r.invalid(fmt.Sprintf("the attack ended with %d of %d unsold", r.Remaining, r.InitialStock))
	case a.cell.Scenario.Attacks == strategy.Renews && longWorkNeverSells(a.hits):
		r.Verdict = scenario.Stuck
		r.Reason = "work that outlasts the lease never sells: each time the lock was lost"
	case a.plan.Inject != nil && r.guarded && r.Strikes == 0 && a.bench.Testbed != nil && hasFault(a.hits):
		*r = r.spoil("no fault came to its point")
	default:
		r.Verdict = scenario.Held
	}
	if r.Verdict == r.Expected {
		r.Agreed = 1
	}
}

// longWorkNeverSells says whether every request that carried a fault lost its lock over it. A lock that gives up
// in time oversells nothing, but it has not kept what it promised to renew.
func longWorkNeverSells(hits []*hit) bool {
	lost := 0
	for _, h := range hits {
		switch {
		case h.injection.HasFault() && h.outcome == Sold:
			return false
		case h.injection.HasFault() && h.outcome == Lost:
			lost++
		}
	}
	return lost > 0
}

func hasFault(hits []*hit) bool {
	return slices.ContainsFunc(hits, func(h *hit) bool { return h.injection.HasFault() })
}

// deserted says that no shop answers any more, of those that were given by address. Whoever runs them has to start anew what
// a scenario kills.
func (a *attack) deserted() string {
	if a.bench.Testbed != nil {
		return ""
	}
	last := map[int]*hit{}
	for _, h := range a.hits {
		if !h.sent.IsZero() && (last[h.shop] == nil || h.sent.After(last[h.shop].sent)) {
			last[h.shop] = h
		}
	}
	var why error
	for _, h := range last {
		if why = h.err; why == nil {
			return ""
		}
	}
	if why == nil {
		return ""
	}
	return fmt.Sprintf("no shop answers any more, and something has to start those anew that are given by --shop: %v", why)
}

// firstFailure is an answer that should not be, and what its shop says of it.
func (a *attack) firstFailure() string {
	for _, h := range a.hits {
		if h.outcome != Failed {
			continue
		}
		answer := fmt.Sprintf("%d %s", h.status, h.body)
		if a.bench.Testbed == nil {
			return answer
		}
		return answer + "\nthe shop's log: " + a.bench.Testbed.Shops[h.shop].LogLine(`"request":"`+h.id+`"`)
	}
	return ""
}

const maxLatency = int64(10 * time.Minute / time.Microsecond)

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, maxLatency, 3) }

func record(h *hdrhistogram.Histogram, d time.Duration) {
	h.RecordValue(min(max(d.Microseconds(), 1), maxLatency))
}

func percentiles(h *hdrhistogram.Histogram) Latency {
	ms := func(q float64) float64 { return round(float64(h.ValueAtQuantile(q))/1000, 2) }
	return Latency{P50: ms(50), P95: ms(95), P99: ms(99), P999: ms(99.9), Max: round(float64(h.Max())/1000, 2)}
}

func round(v float64, digits int) float64 {
	p := math.Pow10(digits)
	return math.Round(v*p) / p
}
