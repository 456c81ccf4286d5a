package trial

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/count"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/stock/stocktest"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// attackOf is an attack with these requests.
func attackOf(o Options, hits ...*Customer) *attack {
	g := &Group{Bench: &Bench{}, o: o, feed: newFeed()}
	return &attack{Show: &Show{Group: g, Items: oneItem, customers: &customers{hits: hits}}}
}

// asked is a request that was under way from one millisecond to another.
func asked(id string, from, to int, outcome load.Outcome, w wish) *Customer {
	sent := noon.Add(time.Duration(from) * time.Millisecond)
	return &Customer{id: id, wish: w, Answer: load.Answer{Sent: sent, Latency: time.Duration(to-from) * time.Millisecond, Outcome: outcome}}
}

// one item is sold, whose id is 0.
var oneItem = []audit.Run{{}}

func order(public, request, key string, quantity int64) standing {
	return standing{count.Order{ID: public, Units: count.Units{0: quantity}}, request, key}
}

// TestAPurchaseIsItsKey: requests and orders under one key are one purchase. An order without its key is found by
// its request.
func TestAPurchaseIsItsKey(t *testing.T) {
	one, keyed := wish{quantity: 1}, wish{quantity: 1, key: "k"}
	for _, tt := range []struct {
		what   string
		hits   []*Customer
		orders []standing
		want   string // twice, unordered, unanswered, denied
	}{
		{"sold, and it does not stand", []*Customer{asked("a", 0, 1, load.Sold, one)}, nil, "0 1 0 0"},
		{"sold, with fewer units", []*Customer{asked("a", 0, 1, load.Sold, wish{quantity: 2})}, []standing{order("p", "a", "", 1)}, "0 1 0 0"},
		{"sold, with another customer's order", []*Customer{asked("a", 0, 1, load.Sold, one), asked("b", 0, 1, load.Sold, one)},
			[]standing{order("p", "a", "", 1), order("q", "a", "", 1)}, "1 1 0 0"},
		{"two orders of two requests under a key", []*Customer{asked("a", 0, 1, load.Sold, keyed), asked("b", 0, 1, load.Sold, keyed)},
			[]standing{order("p", "a", "k", 1), order("q", "b", "", 1)}, "1 0 0 0"},
		{"one order of two requests under a key", []*Customer{asked("a", 0, 1, load.Sold, keyed), asked("b", 2, 3, load.Sold, keyed)},
			[]standing{order("p", "a", "k", 1)}, "0 0 0 0"},
		{"an order that nobody asked for", nil, []standing{order("p", "x", "", 1)}, "0 0 1 1"},
	} {
		s := &Show{Items: oneItem, customers: &customers{hits: tt.hits}}
		f := count.Facts(maps.Values(s.purchases(tt.orders)))
		if got := fmt.Sprint(f.Twice, f.Unordered, f.Unanswered, f.Denied); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.what, got, tt.want)
		}
	}
}

// TestAFewAreAllDecided where a cell of baskets holds. A is answered for good, and B has no answer, or was refused after a second
// while A was held.
func TestAFewAreAllDecided(t *testing.T) {
	store := stocktest.Open(t)
	item, err := audit.Start(t.Context(), store, audit.Run{ID: "run", Strategy: "s", Scenario: "c", InitialStock: 1})
	if err != nil {
		t.Fatal(err)
	}
	at := func(ms int) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }
	for _, tt := range []struct {
		what       string
		outcome    load.Outcome
		b          Wish
		held, ends int // A, in milliseconds after B was sent
		expected   verdict.Kind
		want       verdict.Kind
	}{
		{"no answer", load.Unknown, Wish{}, 0, 0, verdict.Held, verdict.Invalid},
		{"the connection is refused", load.Refused, Wish{}, 0, 0, verdict.Held, verdict.Invalid},
		{"killed", load.Unknown, Wish{Action: labmode.Kill}, 0, 0, verdict.Held, verdict.Held},
		{"beside the others", load.Unknown, Wish{Beside: true}, 0, 0, verdict.Held, verdict.Held},
		{"A goes on soon", load.Busy, Wish{Hesitant: true}, -1000, 400, verdict.Held, verdict.Left},
		{"A goes on when B was refused", load.Busy, Wish{Hesitant: true}, -1000, 5000, verdict.Held, verdict.Invalid},
		{"A goes on late", load.Busy, Wish{Hesitant: true}, -1000, 600, verdict.Held, verdict.Invalid},
		{"A goes on late, as a circle would have it", load.Busy, Wish{Hesitant: true}, -1000, 600, verdict.Left, verdict.Left},
		{"A is held late, and goes on soon", load.Busy, Wish{Hesitant: true}, 300, 600, verdict.Held, verdict.Left},
		{"A was held before", load.Busy, Wish{Hesitant: true}, -1000, -1, verdict.Held, verdict.Left},
	} {
		a, b := asked("a", -1000, 2000, load.SoldOut, wish{quantity: 2}), asked("b", 0, 1000, tt.outcome, wish{quantity: 1})
		b.wanted, b.fault.Action = tt.b, tt.b.Action
		s := attackOf(Options{}, a, b).Show
		s.Store, s.Items, s.Scenario.Group = store, []audit.Run{item}, Baskets
		if tt.ends != 0 {
			s.feed.add(labmode.Event{Request: a.id, Time: at(tt.held), Facts: map[string]any{"fault": "held"}})
			a.letGo = at(tt.ends)
		}
		r := &Result{Expected: tt.expected}
		facts, err := s.count(t.Context(), r)
		if r.SoldOut != 1 || r.Refused > 0 {
			t.Errorf("%s: %d were told that it is sold out, %d were refused otherwise: want A alone", tt.what, r.SoldOut, r.Refused)
		}
		if got := facts.Verdict(); err != nil || got.Kind != tt.want {
			t.Errorf("%s: %+v, %v, want %s", tt.what, got, err, tt.want)
		}
	}
}

// TestOrdersAreAwaited: an order that was answered as sold is awaited until its shop has written it, unless it was
// answered for an earlier request, or its shop was killed.
func TestOrdersAreAwaited(t *testing.T) {
	one := wish{quantity: 1}
	killed, replayed := asked("k", 0, 1, load.Sold, one), asked("r", 0, 1, load.Sold, one)
	killed.fault.Action, replayed.replayed = labmode.Kill, true
	a := attackOf(Options{}, killed, replayed, asked("b", 0, 1, load.Busy, one))
	if !a.allWritten() {
		t.Error("an order is awaited that will never be there")
	}
	a.customers.hits = append(a.customers.hits, asked("s", 0, 1, load.Sold, one))
	for _, at := range []sale.Point{sale.Read, sale.Write, sale.Written} {
		if a.allWritten() {
			t.Errorf("before the point %s, nothing is awaited", at)
		}
		a.feed.add(labmode.Event{Request: "s", Point: at})
	}
	if !a.allWritten() {
		t.Error("an order is awaited that was written")
	}
}
