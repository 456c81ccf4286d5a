package shop

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"stocklock/internal/redislock"
	"stocklock/internal/sale"
	"stocklock/internal/stock/stocktest"
	"stocklock/internal/testserver"
)

func TestMetricsCountWhatHappened(t *testing.T) {
	s := open(t, nil)
	item := s.item(2)
	for i := range 3 {
		s.buy(item, "Idempotency-Key", fmt.Sprint("key-of-some-customer-", i))
	}
	s.buy(item, "Idempotency-Key", "key-of-some-customer-0")
	for i := range 20 {
		s.get(fmt.Sprintf("/made/up/%d", i))
	}
	s.do(t.Context(), "MADE-UP", "/api/v1/items", "", nil)
	series := s.scrape()
	orders := func(outcome string, status int) string {
		return fmt.Sprintf(`shop_request_duration_seconds_count{method="POST",outcome=%q,route="/api/v1/items/:item/orders",status="%d"}`, outcome, status)
	}
	for name, want := range map[string]float64{
		orders("sold", 201): 2, orders("sold-out", 409): 1, orders("replayed", 201): 1,
		orders("fenced-off", 409): 0, orders("lock-lost", 503): 0, orders("busy", 503): 0, orders("unavailable", 503): 0,
		`shop_request_duration_seconds_count{method="GET",outcome="not-found",route="none",status="404"}`:            20,
		`shop_request_duration_seconds_count{method="other",outcome="method-not-allowed",route="none",status="405"}`: 1,
		"shop_lock_wait_seconds_count":                           3,
		"shop_lock_hold_seconds_count":                           3,
		"shop_requests_in_flight":                                0,
		`shop_dependency_up{dependency="mysql"}`:                 1,
		`shop_dependency_up{dependency="redis"}`:                 1,
		`go_sql_max_open_connections{db_name="mysql"}`:           50,
		"redis_pool_connections_max":                             128,
		`shop_info{name="test-shop",strategy="fenced-relative"}`: 1,
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

// TestASaleThatIsTriedTwice has two waits and two holds.
func TestASaleThatIsTriedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &metrics{lockWait: newHistogram("wait", latencies, ""), lockHold: newHistogram("hold", latencies, "")}
		hook := m.sale()
		for i, p := range []sale.Point{sale.Acquired, sale.Acquired, sale.Released, sale.Released, sale.Acquired, sale.Released} {
			time.Sleep(time.Second << i)
			hook(t.Context(), p, nil)
		}
		for which, want := range map[prometheus.Histogram]float64{m.lockWait: 1 + 16, m.lockHold: 2 + 4 + 8 + 32} {
			var got dto.Metric
			if err := which.Write(&got); err != nil || got.Histogram.GetSampleCount() != 2 || got.Histogram.GetSampleSum() != want {
				t.Errorf("%v, %v, want 2 that take %v s", got.Histogram, err, want)
			}
		}
	})
}

func TestMetricsShowTheReferenceLock(t *testing.T) {
	redis := ownRedis(t)
	var waiting atomic.Int64
	s := openUnready(t, stocktest.Database(t), redis.URL(), func(c *Config) {
		c.Deps.Lease, c.Deps.Wait = 2*time.Second, time.Minute
		c.Deps.Hooks.Waiting = func(context.Context, redislock.Event) { waiting.Add(1) }
	})
	testserver.Await(t, "the shop to be ready", func() bool { return s.get("/readyz").status == 200 })
	item := s.item(10)
	atRead, goOn := gate(t)
	var crowd sync.WaitGroup
	buy := func(headers ...string) {
		crowd.Go(func() {
			if got := s.buy(item, headers...); got.status != 201 {
				t.Errorf("a sale in the queue: %d %s", got.status, got.body)
			}
		})
	}
	buy(sleepHeader, atRead)
	testserver.Await(t, "a sale to hold the lock", func() bool { return s.locked(item) })
	for range 4 {
		buy()
	}
	testserver.Await(t, "the others to wait", func() bool { return waiting.Load() == 4 })
	goOn()
	crowd.Wait()
	series := s.scrape()
	// The first wait may begin with an assumption that other shops wait, too, and the first hold may last for a third of
	// the lease: then one hand-off asks Redis.
	free, local, remote := series[`shop_lock_handoffs_total{from="free"}`], series[`shop_lock_handoffs_total{from="local"}`], series[`shop_lock_handoffs_total{from="remote"}`]
	if free != 1 || local < 3 || local+remote != 4 {
		t.Errorf("hand-offs: %v free, %v local, %v remote, want 1, and 4 of which 3 or more are local", free, local, remote)
	}

	lost := make(chan answer)
	atRead, goOn = gate(t)
	go func() { lost <- s.buy(item, sleepHeader, atRead) }()
	testserver.Await(t, "the sale to see a renewal", func() bool {
		series = s.scrape()
		return series["shop_lock_wait_seconds_count"] == 6 && series["shop_lock_renewals_total"] >= 1
	})
	if losses := series["shop_lock_losses_total"]; losses != 0 {
		t.Errorf("%v losses", losses)
	}
	if err := redis.Kill(); err != nil {
		t.Fatal(err)
	}
	testserver.Await(t, "the lock to be lost", func() bool { return s.scrape()["shop_lock_losses_total"] == 1 })
	goOn()
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

// Parts of what the dashboard asks in PromQL.
var (
	promRange  = regexp.MustCompile(`\[[^\]]*\]|\b(and|or|unless|offset \w+)\b`) // and operators
	promBy     = regexp.MustCompile(`\bby \(([^)]*)\)`)
	promWord   = regexp.MustCompile(`\b([a-zA-Z_]\w*)(\{[^}]*\}|\s*\()?`) // a metric with its labels, or a function
	promLabel  = regexp.MustCompile(`(\w+)="[^"]*"`)
	legendWord = regexp.MustCompile(`\{\{(\w+)\}\}`)
)

// TestTheDashboardAsksForWhatThereIs holds the Grafana dashboard against a shop that has not sold
// yet: every metric must be there already, with the labels that are asked for, or a graph would
// miss what happens first.
func TestTheDashboardAsksForWhatThereIs(t *testing.T) {
	read := func(name string) []byte {
		raw, err := os.ReadFile("../../deploy/grafana/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	var dashboard struct {
		Panels []struct {
			Title      string
			Datasource struct{ UID string }
			Targets    []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(read("stocklock.json"), &dashboard); err != nil {
		t.Fatal(err)
	}
	sources := string(read("datasources.yml"))
	series, asked := open(t, nil).scrape(), 0
	for _, panel := range dashboard.Panels {
		if !strings.Contains(sources, "uid: "+panel.Datasource.UID+"\n") {
			t.Errorf("the panel %q asks %q, which is not in datasources.yml", panel.Title, panel.Datasource.UID)
		}
		for _, target := range panel.Targets {
			asked += checkPromQL(t, series, fmt.Sprintf("the panel %q", panel.Title), target.Expr, target.LegendFormat)
		}
	}
	if asked < 25 {
		t.Errorf("the dashboard asks for %d metrics", asked)
	}
}

func TestTheAlertsAskForWhatThereIs(t *testing.T) {
	raw, err := os.ReadFile("../../deploy/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(raw, &rules); err != nil {
		t.Fatal(err)
	}
	series, asked := openReserving(t, nil).scrape(), 0
	series[`up{job="shop"}`] = 1 // Prometheus adds it
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			asked += checkPromQL(t, series, "the alert "+rule.Alert, rule.Expr, "")
			if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
				t.Errorf("the alert %s does not say what it means", rule.Alert)
			}
		}
	}
	if asked < 12 {
		t.Errorf("the alerts ask for %d metrics", asked)
	}
}

// checkPromQL holds an expression against the series of a shop. It returns how many metrics the
// expression asks for.
func checkPromQL(t *testing.T, series map[string]float64, whose, expr, legend string) (asked int) {
	t.Helper()
	labels := []string{}
	for _, by := range promBy.FindAllStringSubmatch(expr, -1) {
		labels = append(labels, strings.Split(strings.ReplaceAll(by[1], " ", ""), ",")...)
	}
	for _, word := range legendWord.FindAllStringSubmatch(legend, -1) {
		labels = append(labels, word[1])
	}
	bare := promBy.ReplaceAllString(promRange.ReplaceAllString(expr, ""), "")
	for _, word := range promWord.FindAllStringSubmatch(bare, -1) {
		if strings.HasSuffix(word[2], "(") {
			continue
		}
		asked++
		if !hasSeries(series, word[1], promLabel.FindAllString(word[2], -1), labels) {
			t.Errorf("%s asks for %s with the labels %q, which no shop has", whose, word[0], labels)
		}
	}
	return asked
}

// hasSeries says whether a metric has a series with these pairs of a label and its value, and with
// these labels.
func hasSeries(series map[string]float64, metric string, pairs, labels []string) bool {
	for full := range series {
		name, rest, _ := strings.Cut(full, "{")
		if name != metric {
			continue
		}
		has := promLabel.FindAllString(rest, -1)
		missing := slices.ContainsFunc(pairs, func(pair string) bool { return !slices.Contains(has, pair) }) ||
			slices.ContainsFunc(labels, func(label string) bool {
				// Prometheus adds these.
				return !slices.Contains([]string{"instance", "job", "namespace"}, label) && !slices.ContainsFunc(has, func(pair string) bool { return strings.HasPrefix(pair, label+"=") })
			})
		if !missing {
			return true
		}
	}
	return false
}

func TestTheDocsNameMetricsThatThereAre(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	metric := regexp.MustCompile("`((?:shop|go_sql|redis_pool)_[a-z_]+)(\\{[^}]*\\})?`")
	series, named := openReserving(t, nil).scrape(), 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range metric.FindAllStringSubmatch(string(text), -1) {
			named++
			pairs := promLabel.FindAllString(word[2], -1)
			if !hasSeries(series, word[1], pairs, nil) && !hasSeries(series, word[1]+"_bucket", pairs, nil) {
				t.Errorf("%s names %s, which no shop has", filepath.Base(page), word[0])
			}
		}
	}
	if named < 5 {
		t.Errorf("the docs name %d metrics", named)
	}
}
