package trial

import (
	"fmt"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy/declared"
)

// Result is what a cell showed. Counts of orders come from SQL, counts of answers from the clients.
type Result struct {
	Strategy string `json:"strategy"`
	Scenario string `json:"scenario"`
	Group    string `json:"group,omitempty"` // of the scenario: see [Scenario.Group]
	Seed     uint64 `json:"seed"`
	Runs     int    `json:"runs"`
	Agreed   int    `json:"agreed"` // runs whose verdict was the expected one
	Shops    int    `json:"shops"`
	// SideBySide is how many cells ran at once on the same cores, 0 for as many as in the rest of the
	// report.
	SideBySide   int   `json:"side_by_side,omitempty"`
	InitialStock int64 `json:"initial_stock"`
	Requests     int64 `json:"requests"`
	// Conditions are those of a comparable cell, which other cells of the report need not have. Results of earlier versions
	// have none.
	Conditions Conditions `json:"conditions,omitzero"`

	Restocked           int64 `json:"restocked,omitempty"` // units that came while it ran
	Sold                int64 `json:"sold"`                // units in orders that stand
	Remaining           int64 `json:"remaining"`
	Oversold            int64 `json:"oversold"`
	LostUpdates         int64 `json:"lost_updates"`
	Duplicates          int64 `json:"duplicates"`            // orders beyond the first one of a purchase
	OrdersWithoutAnswer int64 `json:"orders_without_answer"` // of purchases that nobody was told of as sold
	AnswersWithoutOrder int64 `json:"answers_without_order"` // answered as sold, and no such order stands
	Promised            int64 `json:"promised,omitempty"`    // units in orders that stand, and in answers as sold without one; with a Topology
	Denied              int64 `json:"denied,omitempty"`      // purchases with an order, answered otherwise
	Left                int64 `json:"left,omitempty"`        // units left for certain when a customer was sent away
	HalfSold            int64 `json:"half_sold,omitempty"`   // orders of several items that stand without all that was ordered
	Unpaid              int64 `json:"unpaid,omitempty"`      // orders of reservations that no payment has paid
	Unserved            int64 `json:"unserved,omitempty"`    // payments that were kept, without an order
	Unclaimed           int64 `json:"unclaimed,omitempty"`   // units of several items in no order and not for sale

	Answered  int64 `json:"answered_sold"`      // requests answered as sold
	Replayed  int64 `json:"replayed,omitempty"` // of them those whose order was made for an earlier request
	Unknown   int64 `json:"unknown"`
	SoldOut   int64 `json:"sold_out"`
	Busy      int64 `json:"busy"`
	Fenced    int64 `json:"fenced"`
	Lost      int64 `json:"lost"`
	Conflict  int64 `json:"conflict"`
	Refused   int64 `json:"refused"`
	Errors    int64 `json:"errors"`
	FaultsMet int64 `json:"faults_met"` // faults that reached their point

	SalesPerSecond float64 `json:"sales_per_second"`
	Latency        Latency `json:"latency_ms"`           // of answered requests, from sent to answered
	Corrected      Latency `json:"latency_corrected_ms"` // from the scheduled time: differs only with a rate

	// ByOutcome has the latencies of each outcome, from the scheduled time.
	ByOutcome map[load.Outcome]Latency `json:"latency_by_outcome_ms,omitempty"`
	Steps     []Step                   `json:"steps,omitempty"`      // of a load whose rate changes
	LoadMS    float64                  `json:"load_ms,omitempty"`    // how long requests were sent and answered
	RanOutMS  float64                  `json:"ran_out_ms,omitempty"` // with a rate: when the first answer said sold out

	Distribution []Bucket `json:"distribution,omitempty"`
	Timeline     Timeline `json:"timeline,omitzero"`
	CostPerSale  *Cost    `json:"cost_per_sale,omitempty"` // nil where it could not be counted
	Deadlocks    *int64   `json:"deadlocks,omitempty"`     // that the database has resolved; nil likewise

	FirstError string `json:"-"`                   // one of Errors, also of a play that failed
	Outlasted  bool   `json:"outlasted,omitempty"` // every sale that is longer than its lease has lost its lock

	Starves  bool             `json:"starves,omitempty"` // the strategy declares that demand may be left
	Verdict  verdict.Kind     `json:"verdict"`
	Expected verdict.Kind     `json:"expected"`
	Because  Decisive         `json:"because"`           // of Expected
	Waiting  *verdict.Waiting `json:"waiting,omitempty"` // where the verdict is stuck
	Problem  string           `json:"reason,omitempty"`  // why it is invalid or skipped, as the harness says it
	Unfit    Unfit            `json:"unfit,omitempty"`   // of a skipped cell: what of it cannot run here
	Lacks    words.Text       `json:"lacks,omitzero"`    // of one that does not run: Problem in every language
	Seconds  float64          `json:"seconds"`
	Replay   string           `json:"replay,omitempty"`

	// Servers is what the servers of a topology say of themselves.
	Servers []explain.DatabaseServer `json:"servers,omitempty"`
	// Story is what the customers of a few baskets met, in its order.
	Story []words.Text `json:"story,omitempty"`
	// Seen is what the cell waited for and saw, in this order; Unseen, what it did not see.
	Seen   []Seen `json:"seen,omitempty"`
	Unseen Sight  `json:"unseen,omitempty"`

	Explanation *explain.Explanation `json:"explanation,omitempty"` // nil where there is none
	// WouldHold has the strategies that would have held where this one failed, the nearest first: see
	// [Scenario.WouldHold]. Results of earlier versions have none.
	WouldHold []string `json:"would_hold,omitempty"`
}

// Why is what the harness says of a cell that is invalid, or did not run. Results of earlier versions have it in English.
func (r Result) Why() words.Text {
	if r.Lacks.IsZero() {
		return words.AsItStands(r.Problem)
	}
	return r.Lacks
}

// Nearest is how many of the strategies that would have held are shown.
const Nearest = 3

// Holding has the strategies that would have held where this one failed, the nearest first. It is empty
// where it did not fail.
func (r Result) Holding() []string {
	if !verdict.Of(r.Verdict).Bad {
		return nil
	}
	return r.WouldHold
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

func newResult(sc Scenario, of declared.Strategy, seed uint64, o Options, shops int) Result {
	expected := sc.Expected(of.Under(o.Circumstances))
	r := Result{
		Strategy: of.Name, Scenario: sc.Name, Group: sc.Group, Seed: seed, Runs: 1, Shops: shops, InitialStock: o.Stock,
		Starves: sc.Few == nil && of.Starves, Expected: expected.Verdict, Because: expected.Because,
	}
	if sc.Comparable {
		r.Conditions = o.Conditions
	}
	if sc.Few != nil {
		r.InitialStock, r.Shops = 0, sc.Settings().Shops
		for _, units := range sc.Stock {
			r.InitialStock += units
		}
	}
	return r
}

// Unfit says which part of a cell cannot be run here.
type Unfit string

const (
	UnfitStrategy Unfit = "strategy"
	UnfitScenario Unfit = "scenario"
	// UnfitEach: each could be run, but not this strategy under this scenario.
	UnfitEach Unfit = "cell"
)

// Name is the cell as a word of loadtest run has it.
func (r Result) Name() string { return r.Strategy + ":" + r.Scenario }

// Stock is how many units there were to sell, with those that came.
func (r Result) Stock() int64 { return r.InitialStock + r.Restocked }

// Degraded reports whether nothing was broken, and less was sold than there was demand for.
func (r Result) Degraded() bool {
	return r.Verdict == verdict.Held && r.Remaining > 0 && r.Group != Baskets && r.Group != Reservations
}

// Promise is how many units customers were promised, in orders and in answers, of how many there were: "13/12". It is
// empty for a cell that is not of a topology, and for one that did not run.
func (r Result) Promise() string {
	if !r.OnTopology() || r.Requests == 0 || r.Verdict == verdict.Invalid {
		return ""
	}
	return fmt.Sprintf("%d/%d", r.Promised, r.Stock())
}

// Shown is the verdict as it is shown.
func (r Result) Shown() verdict.Verdict {
	if r.Degraded() {
		return verdict.Of(verdict.Degraded)
	}
	return verdict.Of(r.Verdict)
}

// Surprise reports whether the verdict differs from what the strategy's properties promise, in
// either direction. A skipped cell is no surprise.
func (r Result) Surprise() bool { return r.Verdict != verdict.Skipped && r.Verdict != r.Expected }

// Contention is the only scenario whose numbers may be compared between strategies: nothing goes wrong.
const Contention = "contention"

// Comparable reports whether the scenario's numbers may be compared between strategies.
func (r Result) Comparable() bool { return r.Scenario == Contention }

// OnTopology reports whether the database was that of a topology.
func (r Result) OnTopology() bool {
	return r.Group != OneServer && r.Group != Baskets && r.Group != Reservations && r.Group != Described
}

// tally counts the answers of each outcome. A refusal without a count of its own is one of Refused.
func (r *Result) tally(of map[load.Outcome]int64) {
	r.Answered, r.Unknown, r.SoldOut, r.Busy = of[load.Sold], of[load.Unknown], of[load.SoldOut], of[load.Busy]
	r.Fenced, r.Lost, r.Conflict, r.Errors = of[load.Fenced], of[load.Lost], of[load.Conflict], of[load.Failed]
	r.Refused = of[load.Refused] + of[load.Limited] + of[load.MustReturn] + of[load.OtherState] + of[load.InUse]
}

func (r *Result) count(a *attack) {
	answered, scheduled := newHistogram(), newHistogram()
	byOutcome := map[load.Outcome]*hdrhistogram.Histogram{}
	var lastSale time.Time
	sales := 0 // of the attack
	counts := map[load.Outcome]int64{}
	for _, h := range a.customers.hits {
		if h.Outcome == "" {
			h.Outcome = load.Unknown // interrupted before its answer
		}
		counts[h.Outcome]++
		if h.replayed {
			r.Replayed++
		}
		if h.late {
			continue
		}
		at := h.answeredAt()
		if h.Status != 0 {
			observe(answered, h.Latency)
			observe(scheduled, at.Sub(h.scheduled))
			if byOutcome[h.Outcome] == nil {
				byOutcome[h.Outcome] = newHistogram()
			}
			observe(byOutcome[h.Outcome], at.Sub(h.scheduled))
		}
		if h.Outcome == load.Sold && !h.replayed && h.number < a.requests {
			sales++
			if at.After(lastSale) {
				lastSale = at
			}
		}
	}
	r.Requests, r.FaultsMet = int64(len(a.customers.hits)), a.faultsMet()
	r.Seen, r.Unseen = a.play.seen, a.play.unseen
	if a.kills != nil && r.FaultsMet == 0 {
		r.Unseen = ReachedPoint
	}
	r.tally(counts)
	r.Latency, r.Corrected, r.Distribution = percentiles(answered), percentiles(scheduled), distribution(answered)
	r.ByOutcome = map[load.Outcome]Latency{}
	for outcome, latencies := range byOutcome {
		r.ByOutcome[outcome] = percentiles(latencies)
	}
	r.LoadMS = words.Rounded(a.ended.Sub(a.begun))
	if !a.o.Shape.IsZero() {
		r.Steps, r.RanOutMS = a.steps(), words.Rounded(a.ranOut())
	}
	r.CostPerSale = a.usage.perSale()
	if took := lastSale.Sub(a.begun).Seconds(); took > 0 {
		r.SalesPerSecond = round(float64(sales)/took, 1)
	}
}

// faultsMet counts the sales that have reached the point of their fault. Without traces, they are those whose shop broke the
// connection as it was to, or was to die once it had answered.
func (a *attack) faultsMet() (met int64) {
	if len(a.traces) == 0 {
		for _, h := range a.customers.hits {
			died := h.Outcome == load.Unknown && broken(h.Answer) || h.fault.Point == sale.Answered && h.Outcome == load.Sold
			if h.fault.Action == labmode.Kill && died {
				met++
			}
		}
		return met
	}
	return int64(a.feed.count(func(e labmode.Event) bool {
		_, met := e.Facts["fault"]
		h := a.customers.byID(e.Request)
		return met && (h == nil || !h.late)
	}))
}

const maxLatency = int64(10 * time.Minute / time.Microsecond)

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, maxLatency, 3) }

func observe(h *hdrhistogram.Histogram, d time.Duration) {
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
