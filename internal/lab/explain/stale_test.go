package explain

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
)

// viewed adds a page view of a stock, which reads at one time and stores at another, and has the sale with a
// number read the cache.
func (e *Evidence) viewed(stock string, read, stored float64, reader string) {
	e.View = Request{ID: "7-view", Shop: "shop 3", Sent: at(read - 1), Answered: at(stored + 1)}
	for point, when := range map[sale.Point]float64{sale.Viewed: read, sale.Stored: stored} {
		e.Events = append(e.Events, labmode.Event{Time: at(when), Shop: "shop 3", Request: "7-view", Point: point, Facts: map[string]any{"stock": json.Number(stock)}})
	}
	for i, event := range e.Events {
		if event.Request == reader && event.Point == sale.Read {
			e.Events[i].Facts["from"] = sale.FromCache
		}
	}
}

func TestASaleThatWentByAnOldCopy(t *testing.T) {
	sold := func(e *Evidence) {
		e.InitialStock = 1
		e.add(customer{id: 1, shop: 1, sent: 5, points: whole(10, 12, 20, 22), reads: 1}, customer{id: 2, shop: 2, sent: 30, points: whole(40, 42, 50, 52), reads: 1})
		e.redis(9.0, "set", 22.1, "del", 39.0, "set", 52.1, "del")
		e.order(1, 1)
		e.order(2, 1)
	}
	for _, tt := range []struct {
		what  string
		build func(e *Evidence)
		says  []string
		not   string
		cause verdict.Cause
	}{
		{"stored by a page view", func(e *Evidence) { sold(e); e.viewed("1", 2, 25, "7-2") },
			[]string{"#2 on shop 2 did not read the row: it read 1 from the cache", "page view on shop 3 had read 1 before that order", "(+15 ms)", "The lock worked"}, "", verdict.StaleCache},
		{"that nobody is seen to have stored", func(e *Evidence) { sold(e); e.viewed("1", 2, 60, "7-2") },
			[]string{"read 1 from the cache"}, "page view", verdict.StaleCache},
		{"with a lock of which nothing was seen", func(e *Evidence) { sold(e); e.viewed("1", 2, 25, "7-2"); e.Changes = nil },
			[]string{"page view on shop 3"}, "overlap", verdict.StaleCache},
		{"and not: both read it before either wrote", func(e *Evidence) {
			e.InitialStock = 1
			e.add(customer{id: 1, shop: 1, points: whole(10, 12, 60, 62), reads: 1}, customer{id: 2, shop: 2, sent: 30, points: whole(40, 42, 50, 52), reads: 1})
			e.order(2, 1)
			e.order(1, 1)
			e.viewed("1", 2, 25, "7-1")
		}, nil, "cache", verdict.Unexplained},
	} {
		t.Run(tt.what, func(t *testing.T) {
			x := told(t, evidence(tt.build))
			text := words.English.Say(x.Why...)
			if x.Cause != tt.cause {
				t.Errorf("the cause is %s, want %s: %s", x.Cause, tt.cause, text)
			}
			for _, part := range tt.says {
				if !strings.Contains(text, part) {
					t.Errorf("it says %q, want %q", text, part)
				}
			}
			if tt.not != "" && strings.Contains(text, tt.not) {
				t.Errorf("it says %q, and nothing is known of %q", text, tt.not)
			}
			drawn := slices.ContainsFunc(x.Columns, func(c Column) bool { return c.Name.Key == "lane-view" })
			if drawn != strings.Contains(text, "page view") {
				t.Errorf("the page view is drawn: %t: %s", drawn, text)
			}
		})
	}
}

func TestASaleThatWasMadeAgainWithoutAnAnswer(t *testing.T) {
	x := told(t, evidence(func(e *Evidence) {
		e.Verdict = verdict.Twice
		e.add(customer{id: 1, shop: 1, points: unguarded(10, 20), reads: 2, fault: "write lose"})
		e.Events = append(e.Events, labmode.Event{Time: at(19.8), Shop: "shop 1", Request: "7-1", Point: sale.Write, Facts: map[string]any{labmode.LostFact: "commit"}})
		e.order(1, 2)
		e.order(1, 1)
	}))
	if text := words.English.Say(x.Why...); x.Cause != verdict.UnknownCommit || len(x.Rows) != 2 || !strings.Contains(text, "COMMIT of order 100 when its answer was lost (+9.8 ms)") {
		t.Errorf("%s, %d orders: %s", x.Cause, len(x.Rows), text)
	}
}

func TestUnitsThatDiedWithAShop(t *testing.T) {
	x := told(t, evidence(func(e *Evidence) {
		e.Verdict = verdict.Left
		counting(e)
		e.add(customer{id: 1, shop: 1, points: map[sale.Point]float64{sale.Read: 10}, reads: 2, fault: "read kill", outcome: "unknown"},
			customer{id: 2, shop: 2, sent: 30, points: unguarded(40, 50), reads: 1}, customer{id: 3, shop: 2, sent: 60, outcome: "sold_out", answer: 70})
		e.order(2, 1)
	}))
	if text := words.English.Say(x.Why...); x.Cause != verdict.Unreturned || !strings.Contains(text, "#1 on shop 1 had its units from the counter in Redis when its shop was killed at the point read") {
		t.Errorf("%s: %s", x.Cause, text)
	}
}
