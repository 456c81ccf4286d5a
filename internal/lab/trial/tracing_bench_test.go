package trial

import (
	"slices"
	"testing"
	"time"

	"stocklock/internal/lab/rig"
	"stocklock/internal/stock/stocktest"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/strategy/ladder"
)

// BenchmarkTracing measures how much of its throughput under contention a strategy keeps while
// every sale is recorded:
//
//	go test ./internal/lab/trial -run '^$' -bench Tracing -benchtime 40x
//
// Two testbeds sell in turn, one of them traced, so that other load on the machine affects both.
// The benchmark reports the median of the ratios.
func BenchmarkTracing(b *testing.B) {
	r, err := rig.New("")
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	server, err := r.MySQL(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	store := stocktest.OpenAt(b, server.DSN())
	stocktest.Migrate(b, store)
	o := Options{Stock: 150, Requests: 300, Workers: 12, Timeout: time.Minute,
		Lease: 2 * time.Second, Wait: 20 * time.Second}
	bench := func(name string, trace bool) *Bench {
		testbed, err := r.Testbed(b.Context(), rig.TestbedOptions{Name: name, Shops: 3, DSN: server.DSN(), Trace: trace, Env: map[string]string{
			"SHOP_LAB": "true", "SHOP_LEASE": "2s", "SHOP_WAIT": "20s", "SHOP_RETRY": "2ms", "SHOP_LAB_WORK": "10ms", "SHOP_LOG_LEVEL": "error",
		}})
		if err != nil {
			b.Fatal(err)
		}
		return &Bench{Store: store, Testbed: testbed, Shops: ShopsOf(testbed)}
	}
	plain, traced := bench("plain", false), bench("traced", true)
	for _, name := range []string{"conditional", "fenced"} {
		s, err := ladder.ByName(name)
		if err != nil {
			b.Fatal(err)
		}
		sales := func(on *Bench) float64 {
			calm := Scenario{Name: Contention, Attacks: declared.Exclusive, Comparable: true}
			results, err := Run(b.Context(), on, calm, []declared.Strategy{s.Describe()}, 1, o)
			if err != nil {
				b.Fatal(err)
			}
			result := results[0]
			if result.SalesPerSecond == 0 {
				b.Fatalf("%s sold nothing: %s", name, result.Problem)
			}
			return result.SalesPerSecond
		}
		b.Run(name, func(b *testing.B) {
			var ratios []float64
			for n := range b.N {
				if n%2 == 0 {
					before := sales(plain)
					ratios = append(ratios, sales(traced)/before)
				} else {
					with := sales(traced)
					ratios = append(ratios, with/sales(plain))
				}
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "traced/plain")
			b.ReportMetric(0, "ns/op") // means nothing here
		})
	}
}
