package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/trial"
)

// Threshold is a condition under which a run counts as failed, such as oversold>0.
type Threshold struct {
	spec    string
	metric  metric
	compare string
	limit   float64
}

// metric is a number of a cell.
type metric struct {
	name    string
	of      func(trial.Result) float64
	latency bool // in milliseconds; its limits are durations
}

var metrics = []metric{
	{"oversold", func(r trial.Result) float64 { return float64(r.Oversold) }, false},
	{"lost-updates", func(r trial.Result) float64 { return float64(r.LostUpdates) }, false},
	{"sold", func(r trial.Result) float64 { return float64(r.Sold) }, false},
	{"remaining", func(r trial.Result) float64 { return float64(r.Remaining) }, false},
	{"busy", func(r trial.Result) float64 { return float64(r.Busy) }, false},
	{"unknown", func(r trial.Result) float64 { return float64(r.Unknown) }, false},
	{"errors", func(r trial.Result) float64 { return float64(r.Errors) }, false},
	{"sales-per-second", func(r trial.Result) float64 { return r.SalesPerSecond }, false},
	{"redis-per-sale", func(r trial.Result) float64 { return costOf(r).Redis }, false},
	{"database-per-sale", func(r trial.Result) float64 { return costOf(r).Database }, false},
	{"p50", func(r trial.Result) float64 { return r.Latency.P50 }, true},
	{"p95", func(r trial.Result) float64 { return r.Latency.P95 }, true},
	{"p99", func(r trial.Result) float64 { return r.Latency.P99 }, true},
	{"p99.9", func(r trial.Result) float64 { return r.Latency.P999 }, true},
	{"max", func(r trial.Result) float64 { return r.Latency.Max }, true},
	{"corrected-p50", func(r trial.Result) float64 { return r.Corrected.P50 }, true},
	{"corrected-p99", func(r trial.Result) float64 { return r.Corrected.P99 }, true},
}

func costOf(r trial.Result) trial.Cost {
	if r.CostPerSale == nil {
		return trial.Cost{}
	}
	return *r.CostPerSale
}

// Metrics are the names that a threshold can compare.
func Metrics() []string {
	names := make([]string, len(metrics))
	for i, m := range metrics {
		names[i] = m.name
	}
	return names
}

// ParseThreshold reads a metric, one of > >= < <= = !=, and a limit: a number, or for
// latencies a duration.
func ParseThreshold(spec string) (Threshold, error) {
	at := strings.IndexAny(spec, "<>=!")
	if at < 0 {
		return Threshold{}, fmt.Errorf("%q compares nothing: want such as oversold>0 or p99>50ms", spec)
	}
	length := 1
	if strings.HasPrefix(spec[at+1:], "=") {
		length = 2
	}
	t := Threshold{spec: spec, compare: spec[at : at+length]}
	name, limit := strings.TrimSpace(spec[:at]), strings.TrimSpace(spec[at+length:])
	if t.compare == "!" {
		return Threshold{}, fmt.Errorf("%q: want > >= < <= = or !=", spec)
	}
	i := slices.IndexFunc(metrics, func(m metric) bool { return m.name == name })
	if i < 0 {
		return Threshold{}, fmt.Errorf("%q: no metric %q, want one of %s", spec, name, strings.Join(Metrics(), ", "))
	}
	t.metric = metrics[i]
	if t.metric.latency {
		d, err := time.ParseDuration(limit)
		if err != nil || d < 0 {
			return Threshold{}, fmt.Errorf("%q: %q is no duration, want such as 50ms", spec, limit)
		}
		t.limit = float64(d) / float64(time.Millisecond)
		return t, nil
	}
	var err error
	if t.limit, err = strconv.ParseFloat(limit, 64); err != nil || t.limit != t.limit {
		return Threshold{}, fmt.Errorf("%q: %q is no number", spec, limit)
	}
	return t, nil
}

// Broken says for each cell that meets the condition what it has instead. Cells that were skipped
// have no numbers.
func (t Threshold) Broken(r Report) []string {
	var lines []string
	for _, c := range r.inOrder() {
		if c.Verdict == scenario.Skipped || !t.meets(t.metric.of(c)) {
			continue
		}
		unit := ""
		if t.metric.latency {
			unit = "ms"
		}
		lines = append(lines, fmt.Sprintf("--fail-if '%s': %s under %s has %s %s%s", t.spec, c.Strategy, c.Scenario, t.metric.name, short(t.metric.of(c)), unit))
	}
	return lines
}

func (t Threshold) meets(v float64) bool {
	order := cmp.Compare(v, t.limit)
	switch t.compare {
	case ">":
		return order > 0
	case ">=":
		return order >= 0
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case "!=":
		return order != 0
	default:
		return order == 0
	}
}
