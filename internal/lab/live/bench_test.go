package live

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"stocklock/internal/lab/browsertest"
	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/sale"
)

// BenchmarkComparisonWithPages measures what five pages that watch cost a comparison: its sales a
// second with them, as a ratio to those without, the median of pairs that change their order.
func BenchmarkComparisonWithPages(b *testing.B) {
	s := serve(b, Options{})
	measure := func(pages int) float64 {
		var close []func()
		for range pages {
			answer, err := http.Get(s.home() + "api/events")
			if err != nil {
				b.Fatal(err)
			}
			go func() {
				for buffer := make([]byte, 64<<10); ; {
					if _, err := answer.Body.Read(buffer); err != nil {
						return
					}
				}
			}()
			close = append(close, func() { answer.Body.Close() })
		}
		defer func() {
			for _, end := range close {
				end()
			}
		}()
		c, err := s.compare(comparison{Strategies: []string{"conditional"}, Stock: 2000, Seed: 1})
		if err != nil {
			b.Fatal(err)
		}
		for {
			r, err := s.report(c.ID)
			if err != nil {
				b.Fatal(err)
			}
			if len(r.Cells) == 1 {
				return r.Cells[0].SalesPerSecond
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	measure(0) // starts the servers
	var ratios []float64
	for n := range b.N {
		if n%2 == 0 {
			without := measure(0)
			ratios = append(ratios, measure(5)/without)
		} else {
			with := measure(5)
			ratios = append(ratios, with/measure(0))
		}
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "five-pages/none")
	b.ReportMetric(0, "ns/op") // means nothing here
}

// BenchmarkReplay measures the longest frame, in milliseconds, while a browser replays a cell of
// 2,000 events.
func BenchmarkReplay(b *testing.B) {
	s := serve(b, Options{})
	s.addRun(longCell(2000))
	p := browsertest.Open(b, 5*time.Minute)
	p.Run(chromedp.EmulateViewport(1400, 1000), chromedp.Navigate(s.home()+"#/cell/none/pause"))
	p.Until(`document.querySelectorAll('.entry').length === 2000`)
	var longest []float64
	for range b.N {
		p.Run(chromedp.Evaluate(`window.longest = 0; document.getElementById('speed').value = 75; (() => {
			let last = performance.now();
			const frame = now => { window.longest = Math.max(window.longest, now - last); last = now; requestAnimationFrame(frame); };
			requestAnimationFrame(frame);
		})()`, nil), click("#play-forward"))
		time.Sleep(5 * time.Second)
		longest = append(longest, browsertest.Says[float64](p, `window.longest`))
		p.Run(click("#play-forward"))
	}
	slices.Sort(longest)
	b.ReportMetric(longest[len(longest)/2], "longest-frame-ms")
	b.ReportMetric(0, "ns/op") // means nothing here
}

// addRun adds a run that has ended.
func (s *Server) addRun(r *record, result trial.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	added := &run{ID: len(s.runs) + 1, cellName: cellName{result.Strategy, result.Scenario}, Seed: 1, State: ended, result: &result, record: r, Verdict: result.Verdict}
	s.runs = append(s.runs, added)
}

// longCell is a cell of so many events: sales of five each.
func longCell(events int) (*record, trial.Result) {
	r := &record{scene: scene{Shops: []string{explain.ShopName(0), explain.ShopName(1), explain.ShopName(2)}, Servers: []string{explain.Primary}, LeaseMS: 500, Initial: 30, Rows: 1}}
	for i := 0; len(r.entries) < events; i++ {
		at, shop, request := float64(i)*9, explain.ShopName(i%3), fmt.Sprintf("1-%d", i)
		r.entries = append(r.entries, Entry{AtMS: at, Kind: Sent, Shop: shop, Request: request},
			Entry{AtMS: at + 1, Kind: Lock, Server: explain.Primary, Key: "stock:1", What: "set"},
			Entry{AtMS: at + 2, Kind: Point, Shop: shop, Request: request, Point: sale.Acquired},
			Entry{AtMS: at + 7, Kind: Point, Shop: shop, Request: request, Point: sale.Released},
			Entry{AtMS: at + 8, Kind: Answered, Shop: shop, Request: request, Outcome: "sold_out", LatencyMS: 8})
	}
	r.entries = r.entries[:events]
	return r, trial.Result{Strategy: "none", Scenario: "pause", Verdict: verdict.Held, Expected: verdict.Held, Requests: int64(events) / 5}
}
