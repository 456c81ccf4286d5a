package shop

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"stocklock/internal/rig/rigtest"
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
		orders("fenced-off"): 0, orders("lock-lost"): 0, orders("busy"): 0, orders("unavailable"): 0,
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

func TestMetricsShowTheReferenceLock(t *testing.T) {
	redis := ownRedis(t)
	s := openUnready(t, rigtest.MySQL(t), redis.URL(), func(c *Config) {
		c.Strategy, c.Lab = byName(t, "fenced"), &Lab{}
		c.Deps.Lease, c.Deps.Wait = 300*time.Millisecond, 20*time.Second
	})
	waitFor(t, "the shop to be ready", func() bool { return s.get("/readyz").status == 200 })
	item := s.item(10)
	var crowd sync.WaitGroup
	for range 5 {
		crowd.Go(func() {
			if got := s.buy(item, "X-Lab-Fault", "read sleep 250ms"); got.status != 201 {
				t.Errorf("a sale in the queue: %d %s", got.status, got.body)
			}
		})
	}
	crowd.Wait()
	series := s.scrape()
	if series[`shop_lock_handoffs_total{from="local"}`] != 4 || series[`shop_lock_handoffs_total{from="free"}`] != 1 {
		t.Errorf("hand-offs: %v free, %v local, want 1 and 4", series[`shop_lock_handoffs_total{from="free"}`], series[`shop_lock_handoffs_total{from="local"}`])
	}
	if series["shop_lock_renewals_total"] < 1 || series["shop_lock_losses_total"] != 0 {
		t.Errorf("%v renewals, %v losses", series["shop_lock_renewals_total"], series["shop_lock_losses_total"])
	}

	lost := make(chan answer)
	go func() { lost <- s.buy(item, "X-Lab-Fault", "read sleep 2s") }()
	waitFor(t, "the sale to hold the lock", func() bool { return s.scrape()["shop_lock_wait_seconds_count"] == 6 })
	if err := redis.Kill(); err != nil {
		t.Fatal(err)
	}
	if got := <-lost; got.problem() != "lock-lost" || got.header.Get("Retry-After") == "" {
		t.Errorf("a sale whose lock was lost: %d %s", got.status, got.body)
	}
	if left := s.left(item); left != 5 {
		t.Errorf("%d units left, want 5", left)
	}
	if got := s.scrape()["shop_lock_losses_total"]; got != 1 {
		t.Errorf("%v losses, want 1", got)
	}
}

// TestTheDashboardAsksForWhatThereIs holds the names in the Grafana dashboard
// against a shop's metrics.
func TestTheDashboardAsksForWhatThereIs(t *testing.T) {
	raw, err := os.ReadFile("../../deploy/grafana/stocklock.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(raw, &dashboard); err != nil {
		t.Fatal(err)
	}
	s := open(t, nil)
	s.buy(s.item(1))
	known, labels := map[string]bool{}, map[string]bool{}
	label := regexp.MustCompile(`\b([a-z_]+)="([^"]*)"`)
	for series := range s.scrape() {
		name, _, _ := strings.Cut(series, "{")
		known[name] = true
		for _, pair := range label.FindAllStringSubmatch(series, -1) {
			labels[pair[1]], labels[pair[0]] = true, true
		}
	}
	for _, k := range kinds {
		labels[fmt.Sprintf("outcome=%q", k.slug)] = true // whether or not it has happened
	}
	names, asked := regexp.MustCompile(`\b(shop|go|redis|process)_[a-z_]+`), 0
	by := regexp.MustCompile(`\bby \(([a-z_]+)\)`)
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			for _, name := range names.FindAllString(target.Expr, -1) {
				asked++
				if !known[name] {
					t.Errorf("the panel %q asks for %s, which no shop has", panel.Title, name)
				}
			}
			for _, pair := range label.FindAllStringSubmatch(target.Expr, -1) {
				if !labels[pair[0]] {
					t.Errorf("the panel %q asks for %s, which no shop has", panel.Title, pair[0])
				}
			}
			for _, word := range by.FindAllStringSubmatch(target.Expr, -1) {
				if !labels[word[1]] {
					t.Errorf("the panel %q groups by %s, which no shop has", panel.Title, word[1])
				}
			}
		}
	}
	if asked < 15 {
		t.Errorf("the dashboard asks for %d metrics", asked)
	}
}
