package shop

import (
	"bufio"
	"net/http"
	"strconv"
	"strings"
)

// scrape reads /metrics: the value of every series.
func (r *running) scrape() map[string]float64 {
	r.t.Helper()
	got, err := send(r.t.Context(), http.MethodGet, r.internal+"/metrics", "", nil)
	if err != nil || got.status != 200 {
		r.t.Fatalf("/metrics: %d %s %v", got.status, got.body, err)
	}
	series := map[string]float64{}
	for lines := bufio.NewScanner(strings.NewReader(got.body)); lines.Scan(); {
		if cut := strings.LastIndex(lines.Text(), " "); cut > 0 && lines.Text()[0] != '#' {
			value, err := strconv.ParseFloat(lines.Text()[cut+1:], 64)
			if err != nil {
				r.t.Fatalf("line %q: %v", lines.Text(), err)
			}
			series[lines.Text()[:cut]] = value
		}
	}
	return series
}
