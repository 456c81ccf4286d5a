package trial

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/count"
	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
	"stocklock/internal/strategy/declared"
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

// TestUnitsThatWereLeft has a stock of three.
func TestUnitsThatWereLeft(t *testing.T) {
	one, two := wish{quantity: 1}, wish{quantity: 2}
	sold := func(id string, from, to int) *Customer { return asked(id, from, to, load.Sold, one) }
	alone := func(h *Customer) *Customer {
		h.alone = true
		return h
	}
	replayed := asked("r", 2, 3, load.Sold, one)
	replayed.replayed = true
	elsewhere := declared.State{Keys: []string{"{%s}:left"}}
	for _, tt := range []struct {
		what     string
		hits     []*Customer
		ordered  string // one unit each, by these requests
		state    declared.State
		restocks []units
		want     int64
	}{
		{"sold out after all three", []*Customer{sold("a", 0, 1), sold("b", 0, 1), sold("c", 0, 1), asked("d", 2, 3, load.SoldOut, one)}, "abc", declared.State{}, nil, 0},
		{"sold out after two", []*Customer{sold("a", 0, 1), sold("b", 0, 1), asked("d", 2, 3, load.SoldOut, one)}, "ab", declared.State{}, nil, 1},
		{"sold out after two, and the third was sold later", []*Customer{sold("a", 0, 1), sold("b", 0, 1), asked("d", 2, 3, load.SoldOut, one), sold("c", 4, 5)}, "abc", declared.State{}, nil, 1},
		{"sold out while the third was under way", []*Customer{sold("a", 0, 1), sold("b", 0, 1), asked("d", 2, 4, load.SoldOut, one), sold("c", 3, 5)}, "abc", declared.State{}, nil, 0},
		{"two were wanted and one was left", []*Customer{sold("a", 0, 1), sold("b", 0, 1), asked("d", 2, 3, load.SoldOut, two)}, "ab", declared.State{}, nil, 0},
		{"one has no answer", []*Customer{sold("a", 0, 1), sold("b", 0, 1), asked("c", 0, 1, load.Unknown, one), asked("d", 2, 3, load.SoldOut, one)}, "ab", declared.State{}, nil, 0},
		{"one was busy at the same time", []*Customer{sold("a", 0, 1), sold("b", 0, 1), asked("c", 0, 3, load.Busy, one), asked("d", 2, 4, load.SoldOut, one)}, "ab", declared.State{}, nil, 0},
		{"one was busy before", []*Customer{sold("a", 0, 1), sold("b", 0, 1), asked("c", 0, 1, load.Busy, one), asked("d", 2, 4, load.SoldOut, one)}, "ab", declared.State{}, nil, 1},
		{"one that was busy before may keep its unit", []*Customer{sold("a", 0, 1), sold("b", 0, 1), asked("c", 0, 1, load.Busy, one), asked("d", 2, 4, load.SoldOut, one)}, "ab", elsewhere, nil, 0},
		{"one that was busy has an order", []*Customer{sold("a", 0, 1), sold("b", 0, 1), asked("c", 0, 1, load.Busy, one), asked("d", 2, 4, load.SoldOut, one)}, "abc", declared.State{}, nil, 0},
		{"an order is nobody's", []*Customer{sold("a", 0, 1), sold("b", 0, 1), asked("d", 2, 3, load.SoldOut, one)}, "abx", declared.State{}, nil, 0},
		{"a repeat may keep its unit", []*Customer{sold("a", 0, 1), sold("b", 0, 1), replayed, asked("d", 4, 5, load.SoldOut, one)}, "ab", elsewhere, nil, 0},
		{"a repeat is under way", []*Customer{sold("a", 0, 1), sold("b", 0, 1), replayed, asked("d", 2, 4, load.SoldOut, one)}, "ab", declared.State{}, nil, 0},
		{"a repeat takes nothing", []*Customer{sold("a", 0, 1), sold("b", 0, 1), replayed, asked("d", 4, 5, load.SoldOut, one)}, "ab", declared.State{}, nil, 1},
		{"two were answered as sold out", []*Customer{sold("a", 0, 1), asked("d", 2, 4, load.SoldOut, one), asked("e", 3, 5, load.SoldOut, one)}, "a", declared.State{}, nil, 1},
		{"units came before", []*Customer{sold("a", 0, 1), sold("b", 0, 1), sold("c", 0, 1), asked("d", 3, 4, load.SoldOut, one)}, "abc", declared.State{}, []units{{noon.Add(2 * time.Millisecond), 5}}, 5},
		{"units came after", []*Customer{sold("a", 0, 1), sold("b", 0, 1), sold("c", 0, 1), asked("d", 1, 4, load.SoldOut, one)}, "abc", declared.State{}, []units{{noon.Add(2 * time.Millisecond), 5}}, 0},
		{"busy beside others", []*Customer{sold("a", 0, 1), asked("d", 2, 3, load.Busy, one)}, "a", declared.State{}, nil, 0},
		{"busy, and nobody else there", []*Customer{sold("a", 0, 1), alone(asked("d", 2, 3, load.Busy, one))}, "a", declared.State{}, nil, 2},
		{"fenced, and nobody else there", []*Customer{sold("a", 0, 1), alone(asked("d", 2, 3, load.Fenced, one))}, "a", declared.State{}, nil, 2},
	} {
		a := attackOf(Options{Stock: 3}, tt.hits...)
		a.restocks, a.Of.State = tt.restocks, tt.state
		var orders []standing
		for _, request := range tt.ordered {
			orders = append(orders, order("", string(request), "", 1))
		}
		if got, away := a.unitsLeft(orders); got != tt.want || got > 0 && away != "d" {
			t.Errorf("%s: %d units were left for certain of %q, want %d", tt.what, got, away, tt.want)
		}
	}
}

// TestUnitsThatTheLabBuysAfterTheAttack were left for that long. What is restocked then was not.
func TestUnitsThatTheLabBuysAfterTheAttack(t *testing.T) {
	one := wish{quantity: 1}
	a := attackOf(Options{Stock: 3}, asked("a", 0, 1, load.Sold, one), asked("d", 2, 3, load.SoldOut, one), asked("b", 4, 5, load.Sold, one), asked("e", 20, 21, load.Sold, one))
	var orders []stock.Order
	for i, h := range a.customers.hits {
		h.number = i
		if h.Outcome == load.Sold {
			orders = append(orders, stock.Order{RequestID: h.id, Quantity: 1})
		}
	}
	a.play, a.requests, a.sentAway = newPlay(a), 2, "d"
	for want, restocks := range map[string][]units{
		"1 of 3 units were never sold": {{noon.Add(10 * time.Millisecond), 5}}, "while units were left, which were sold later": nil,
	} {
		a.restocks = restocks
		e := a.evidenceWith(slices.Clone(orders))
		e.Verdict = verdict.Left
		if said := words.English.Say(explain.Explain(t.Context(), e).Why...); !strings.Contains(said, want) {
			t.Errorf("%q, want %q", said, want)
		}
	}
}

// TestWishesComeFromTheSeed also looks whether every kind of wish is among the first requests.
func TestWishesComeFromTheSeed(t *testing.T) {
	first := func(seed uint64) (all []wish) {
		w := wishes{seed: seed, item: 7, keys: true, after: map[string]bool{}, sent: map[string]int{}}
		for n := range 60 {
			all = append(all, w.next(n, n == 5))
			w.answered(&Customer{wish: all[n], Answer: load.Answer{Outcome: load.Sold}})
		}
		return all
	}
	if once, again := first(1), first(1); fmt.Sprint(once) != fmt.Sprint(again) || fmt.Sprint(once) == fmt.Sprint(first(2)) {
		t.Error("the seed does not decide what is bought")
	}
	several, beside, again := 0, 0, 0
	for seed := range uint64(20) {
		times := map[string]int{}
		last := ""
		for n, w := range first(seed) {
			if w.quantity > 1 {
				several++
			}
			if n == 5 && (w.quantity != 1 || times[w.key] > 0 && w.key != "") {
				t.Errorf("seed %d: the request with a fault is %+v", seed, w)
			}
			switch {
			case w.key != "" && w.key == last:
				beside++
			case times[w.key] > 0 && w.key != "":
				again++
			}
			times[w.key]++
			last = w.key
		}
	}
	if several < 40 || beside < 20 || again < 20 {
		t.Errorf("%d wishes for several units, %d repeats beside, %d later", several, beside, again)
	}
	plain := wishes{plain: true}
	for n := range 60 {
		if w := plain.next(n, false); w != (wish{quantity: 1}) {
			t.Errorf("under contention, request %d is %+v", n, w)
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
