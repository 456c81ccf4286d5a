package report

import (
	"slices"
	"strconv"
	"strings"

	"stocklock/internal/lab/drawing"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/words"
)

// metrics are the numbers of a cell, in the order of the tables. All forms read this list, the live
// page and the tables of a load with a rate among them: a metric is one line here, and its title one of the catalogue. Each is a
// column of CSV, a name for --fail-if, and a count on the page of its cell. The field shown lists the
// other places. A number that older results lack is a pointer in [trial.Result]: nil is a dash.
// While a cell runs, the page counts p50 and p99 alone (live/watcher.go, live/page/cell.js).
var metrics = []metric{
	{name: "requests", of: count(func(r trial.Result) int64 { return r.Requests }), shown: always},
	{name: "sold", of: count(func(r trial.Result) int64 { return r.Sold }), outOf: trial.Result.Stock, shown: inTerminal | onPage | always},
	{name: "restocked", of: count(func(r trial.Result) int64 { return r.Restocked }), shown: always},
	{name: "promised", of: promised, outOf: trial.Result.Stock},
	{name: "remaining", of: count(func(r trial.Result) int64 { return r.Remaining }), shown: always},
	{name: "oversold", of: count(func(r trial.Result) int64 { return r.Oversold }), bad: true, shown: inTerminal | onPage | always},
	{name: "lost-updates", of: count(func(r trial.Result) int64 { return r.LostUpdates }), bad: true, shown: inTerminal | always, leave: 4},
	{name: "answered-sold", of: count(func(r trial.Result) int64 { return r.Answered })},
	{name: "sold-out", of: count(func(r trial.Result) int64 { return r.SoldOut }), shown: inTerminal, leave: 5},
	{name: "busy", of: count(func(r trial.Result) int64 { return r.Busy }), shown: inTerminal | onPage, leave: 6},
	{name: "fenced", of: count(func(r trial.Result) int64 { return r.Fenced })},
	{name: "lost", of: count(func(r trial.Result) int64 { return r.Lost })},
	{name: "conflict", of: count(func(r trial.Result) int64 { return r.Conflict })},
	{name: "refused", of: count(func(r trial.Result) int64 { return r.Refused })},
	{name: "unknown", of: count(func(r trial.Result) int64 { return r.Unknown }), shown: inTerminal, leave: 2},
	{name: "errors", of: count(func(r trial.Result) int64 { return r.Errors }), bad: true, shown: inTerminal, leave: 3},
	{name: "orders-without-answer", of: count(func(r trial.Result) int64 { return r.OrdersWithoutAnswer })},
	{name: "answers-without-order", of: count(func(r trial.Result) int64 { return r.AnswersWithoutOrder }), bad: true},
	{name: "denied", of: count(func(r trial.Result) int64 { return r.Denied }), bad: true},
	{name: "half-sold", of: count(func(r trial.Result) int64 { return r.HalfSold }), bad: true},
	{name: "unpaid", of: count(func(r trial.Result) int64 { return r.Unpaid }), bad: true},
	{name: "unserved", of: count(func(r trial.Result) int64 { return r.Unserved }), bad: true},
	{name: "unclaimed", of: count(func(r trial.Result) int64 { return r.Unclaimed }), bad: true},
	{name: "left", of: count(func(r trial.Result) int64 { return r.Left }), bad: true},
	{name: "duplicates", of: count(func(r trial.Result) int64 { return r.Duplicates }), bad: true},
	{name: "faults-met", of: count(func(r trial.Result) int64 { return r.FaultsMet })},
	{name: "sales-per-second", of: func(r trial.Result) (float64, bool) { return r.SalesPerSecond, timed(r) }, better: more, shown: inTerminal | onPage | inComparing | always, leave: 10},
	{name: "p50", latency: func(l trial.Latency) float64 { return l.P50 }, ms: true, better: less, shown: inTerminal | onPage | inComparing | always | inLatencies | inSteps, leave: 8},
	{name: "p95", latency: func(l trial.Latency) float64 { return l.P95 }, ms: true, better: less, shown: inTerminal | onPage | always | inLatencies, leave: 1},
	{name: "p99", latency: func(l trial.Latency) float64 { return l.P99 }, ms: true, better: less, shown: inTerminal | onPage | inComparing | always | inLatencies | inSteps, leave: 9},
	{name: "p99.9", latency: func(l trial.Latency) float64 { return l.P999 }, ms: true, better: less, shown: onPage | always},
	{name: "max", latency: func(l trial.Latency) float64 { return l.Max }, ms: true, better: less, shown: inTerminal | onPage | always | inLatencies, leave: 7},
	{name: "corrected-p50", of: number(func(r trial.Result) float64 { return r.Corrected.P50 }), ms: true, better: less},
	{name: "corrected-p99", of: number(func(r trial.Result) float64 { return r.Corrected.P99 }), ms: true, better: less},
	{name: "corrected-max", of: number(func(r trial.Result) float64 { return r.Corrected.Max }), ms: true, better: less},
	{name: "sold-p50", of: byOutcome(load.Sold, func(l trial.Latency) float64 { return l.P50 }), ms: true, better: less},
	{name: "sold-p99", of: byOutcome(load.Sold, func(l trial.Latency) float64 { return l.P99 }), ms: true, better: less},
	{name: "busy-p99", of: byOutcome(load.Busy, func(l trial.Latency) float64 { return l.P99 }), rare: true, ms: true, better: less},
	{name: "sold-out-p99", of: byOutcome(load.SoldOut, func(l trial.Latency) float64 { return l.P99 }), rare: true, ms: true, better: less},
	{name: "redis-per-sale", of: perSale(func(c trial.Cost) float64 { return c.Redis }), better: less, shown: onPage | inComparing, leave: 7},
	{name: "database-per-sale", of: perSale(func(c trial.Cost) float64 { return c.Database }), better: less, shown: onPage | inComparing, leave: 6},
	{name: "deadlocks", of: deadlocks, shown: inTerminal | onPage | inComparing, leave: 7},
	{name: "seconds", of: number(func(r trial.Result) float64 { return r.Seconds }), shown: always},
}

// metric is a number of a cell.
type metric struct {
	name string                             // for --fail-if; that of the CSV column follows from it
	of   func(trial.Result) (float64, bool) // false where the cell does not have it: a dash is shown
	// latency takes the place of of for a number that every set of latencies has: that of all answers,
	// of one kind of answer, or of a step.
	latency func(trial.Latency) float64
	outOf   func(trial.Result) int64 // what it is a part of, nil for nothing
	bad     bool                     // more than 0 is an error of the strategy or of the lab
	rare    bool                     // a cell whose answers were timed may have none of the kind
	ms      bool                     // milliseconds; the limits of --fail-if are durations
	better  direction
	shown   places
	leave   int // where columns have no room, the lowest is left out first; 0 always stays
}

// places are the tables that show a metric.
type places int

const (
	inTerminal  places = 1 << iota // the comparison of strategies, in the terminal
	onPage                         // the same in HTML, and loads on the live page
	inComparing                    // of two results
	inLatencies                    // those by kind of answer, of a load with a rate
	inSteps                        // those of the sales of each step
	always                         // on the page of a cell even where it is 0
)

// direction says which change of a metric is an improvement.
type direction int

const (
	neither direction = iota
	less
	more
)

// value is the number, false where the cell does not have it.
func (m metric) value(r trial.Result) (float64, bool) {
	if m.latency != nil {
		return m.latency(r.Latency), timed(r)
	}
	return m.of(r)
}

func (d direction) String() string { return [...]string{"", "less", "more"}[d] }

func count(of func(trial.Result) int64) func(trial.Result) (float64, bool) {
	return number(func(r trial.Result) float64 { return float64(of(r)) })
}

// number is a metric that every cell has in which requests were sent.
func number(of func(trial.Result) float64) func(trial.Result) (float64, bool) {
	return func(r trial.Result) (float64, bool) { return of(r), r.Requests > 0 }
}

// timed reports whether requests were measured: a cell of a topology counts them alone.
func timed(r trial.Result) bool { return r.Latency.Max > 0 }

func perSale(of func(trial.Cost) float64) func(trial.Result) (float64, bool) {
	return func(r trial.Result) (float64, bool) {
		if r.CostPerSale == nil {
			return 0, false
		}
		return of(*r.CostPerSale), true
	}
}

func promised(r trial.Result) (float64, bool) { return float64(r.Promised), r.Promise() != "" }

func deadlocks(r trial.Result) (float64, bool) {
	if r.Deadlocks == nil {
		return 0, false
	}
	return float64(*r.Deadlocks), true
}

// byOutcome is a latency of the answers with one outcome, from the scheduled time.
func byOutcome(o load.Outcome, of func(trial.Latency) float64) func(trial.Result) (float64, bool) {
	return func(r trial.Result) (float64, bool) {
		l, ok := r.ByOutcome[o]
		return of(l), ok
	}
}

// dash stands for what is not known.
const dash = "–"

// text is the number as it is shown, written by a function of the form.
func (m metric) text(r trial.Result, write func(float64) string) string {
	v, ok := m.value(r)
	switch {
	case !ok:
		return dash
	case m.outOf != nil:
		return write(v) + "/" + write(float64(m.outOf(r)))
	}
	return write(v)
}

// whole writes a number without decimals.
func whole(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) }

// title is that of a column.
func (m metric) title(in *words.Language) string { return in.Say(words.Of("metric." + m.name)) }

// broken is the title of a narrow column.
func broken(title string) string { return strings.NewReplacer(" ", "\n", "/", "\n/").Replace(title) }

func inOneLine(title string) string {
	return strings.NewReplacer("\n/", "/", "\n", " ").Replace(title)
}

// csvName is the name of the metric's column.
func (m metric) csvName() string {
	name := strings.NewReplacer("-", "_", ".", "").Replace(m.name)
	if m.ms {
		name += "_ms"
	}
	return name
}

// worth reports whether a cell has the metric, and whether a count is not 0.
func (m metric) worth(r trial.Result) bool {
	v, ok := m.value(r)
	return ok && (v != 0 || m.better != neither || m.outOf != nil)
}

// metricsIn are the metrics that a table shows: those that are worth it in one of its cells.
func metricsIn(where places, cells []trial.Result) []metric {
	return slices.DeleteFunc(slices.Clone(metrics), func(m metric) bool {
		return m.shown&where == 0 || !slices.ContainsFunc(cells, m.worth)
	})
}

// latenciesIn are the metrics of latencies that a table shows, with their titles in it.
func latenciesIn(in *words.Language, where places) (shown []metric, titles []any) {
	for _, m := range metrics {
		if m.shown&where != 0 {
			shown, titles = append(shown, m), append(titles, strings.TrimSuffix(m.title(in), " ms"))
		}
	}
	return shown, titles
}

// Number is a metric of a cell as a page shows it. The catalogue has its title under metric.<name>.
type Number struct {
	Name   string  `json:"name"`
	Text   string  `json:"text"`
	Value  float64 `json:"value,omitempty"` // of a column
	Bad    bool    `json:"bad,omitempty"`
	Better string  `json:"better,omitempty"` // of a column: more or less; empty for what is only counted
	Worth  bool    `json:"worth,omitempty"`  // of a column: the others are 0, or not known
}

// Numbers are the metrics of a cell: those of its own page, and those that are columns where it is compared.
func Numbers(r trial.Result) (cell, columns []Number) {
	for _, m := range metrics {
		v, ok := m.value(r)
		n := Number{Name: m.name, Text: m.text(r, drawing.Short), Bad: m.bad && v > 0}
		if m.shown&always != 0 || ok && v != 0 {
			cell = append(cell, n)
		}
		if n.Value, n.Better, n.Worth = v, m.better.String(), m.worth(r); m.shown&onPage != 0 {
			columns = append(columns, n)
		}
	}
	return cell, columns
}

// leaveFirst are the columns that a narrow terminal leaves out, in that order, counted from 1.
// before is the number of columns before the metrics.
func leaveFirst(shown []metric, before int) []int {
	var columns []int
	for i, m := range shown {
		if m.leave > 0 {
			columns = append(columns, before+i+1)
		}
	}
	slices.SortStableFunc(columns, func(a, b int) int { return shown[a-before-1].leave - shown[b-before-1].leave })
	return columns
}
