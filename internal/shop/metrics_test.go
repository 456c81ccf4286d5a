package shop

import (
	"bufio"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
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

func TestMetricsCountWhatHappened(t *testing.T) {
	s := open(t, nil)
	item := s.item(2)
	for i := range 3 {
		s.buy(item, "Idempotency-Key", fmt.Sprint("key-", i))
	}
	s.buy(item, "Idempotency-Key", "key-0")
	for i := range 20 {
		s.get(fmt.Sprintf("/made/up/%d", i))
	}
	series := s.scrape()
	orders := func(outcome string) string {
		return fmt.Sprintf(`shop_request_duration_seconds_count{outcome=%q,route="/api/v1/items/:item/orders"}`, outcome)
	}
	for name, want := range map[string]float64{
		orders("sold"): 2, orders("sold-out"): 1, orders("replayed"): 1,
		`shop_request_duration_seconds_count{outcome="not-found",route="none"}`: 20,
		"shop_lock_wait_seconds_count":                                          3,
		"shop_lock_hold_seconds_count":                                          3,
		"shop_requests_in_flight":                                               0,
		`shop_dependency_up{dependency="mysql"}`:                                1,
		`shop_dependency_up{dependency="redis"}`:                                1,
		`go_sql_max_open_connections{db_name="mysql"}`:                          50,
		`shop_info{name="test-shop",strategy="owner-checked"}`:                  1,
	} {
		if got, there := series[name]; !there || got != want {
			t.Errorf("%s is %v (there: %t), want %v", name, got, there, want)
		}
	}
	if series[`redis_pool_connections{state="idle"}`] < 1 {
		t.Error("no idle connection to Redis after sales")
	}
	for name := range series {
		if strings.Contains(name, "made/up") {
			t.Errorf("a client made up the series %s", name)
		}
	}
}

func TestOnlyTheInternalListenerShowsTheInside(t *testing.T) {
	s := open(t, nil)
	for _, path := range []string{"/metrics", "/debug/pprof/", "/debug/pprof/heap"} {
		if got := s.get(path); got.status != 404 {
			t.Errorf("public %s: %d", path, got.status)
		}
		if got, err := send(t.Context(), http.MethodGet, s.internal+path, "", nil); err != nil || got.status != 200 {
			t.Errorf("internal %s: %d, %v", path, got.status, err)
		}
	}
	if got, err := send(t.Context(), http.MethodGet, s.internal+"/debug/pprof/cmdline", "", nil); err != nil || got.status != 404 {
		t.Errorf("the command line: %d, %v", got.status, err)
	}
}
