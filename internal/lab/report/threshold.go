package report

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"stocklock/internal/lab/drawing"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/verdict"
)

// Threshold is a condition under which a run counts as failed, such as oversold>0.
type Threshold struct {
	spec   string
	metric metric
	meets  func(order int) bool // of a value and the limit, as cmp.Compare has it
	limit  float64
}

var comparisons = map[string]func(order int) bool{
	">":  func(order int) bool { return order > 0 },
	">=": func(order int) bool { return order >= 0 },
	"<":  func(order int) bool { return order < 0 },
	"<=": func(order int) bool { return order <= 0 },
	"=":  func(order int) bool { return order == 0 },
	"==": func(order int) bool { return order == 0 },
	"!=": func(order int) bool { return order != 0 },
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
	t := Threshold{spec: spec, meets: comparisons[spec[at:at+length]]}
	name, limit := strings.TrimSpace(spec[:at]), strings.TrimSpace(spec[at+length:])
	if t.meets == nil {
		return Threshold{}, fmt.Errorf("%q: want > >= < <= = or !=", spec)
	}
	var err error
	if t.metric, err = scenario.Named("metric", name, metrics, func(m metric) string { return m.name }); err != nil {
		return Threshold{}, fmt.Errorf("%q: %w", spec, err)
	}
	if t.metric.ms {
		d, err := time.ParseDuration(limit)
		if err != nil || d < 0 {
			return Threshold{}, fmt.Errorf("%q: %q is no duration, want such as 50ms", spec, limit)
		}
		t.limit = float64(d) / float64(time.Millisecond)
		return t, nil
	}
	if t.limit, err = strconv.ParseFloat(limit, 64); err != nil || t.limit != t.limit {
		return Threshold{}, fmt.Errorf("%q: %q is no number", spec, limit)
	}
	return t, nil
}

// Broken says what each cell has that meets the condition. A cell that was skipped or does not have
// the metric meets none. Where no cell has it, Broken says that: what was not seen does not pass.
func (t Threshold) Broken(r Report) []string {
	var lines []string
	seen := false
	for _, c := range r.InOrder() {
		v, ok := t.metric.value(c)
		if c.Verdict == verdict.Skipped {
			continue
		}
		seen = seen || ok || t.metric.rare && len(c.ByOutcome) > 0
		if !ok || !t.meets(cmp.Compare(v, t.limit)) {
			continue
		}
		unit := ""
		if t.metric.ms {
			unit = "ms"
		}
		lines = append(lines, fmt.Sprintf("--fail-if '%s': %s has %s %s%s", t.spec, c.Name(), t.metric.name, drawing.Short(v), unit))
	}
	if !seen {
		lines = append(lines, fmt.Sprintf("--fail-if '%s': no cell that ran has %s", t.spec, t.metric.name))
	}
	return lines
}
