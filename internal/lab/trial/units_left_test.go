package trial

import (
	"slices"
	"strings"
	"testing"
	"time"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/stock"
	"stocklock/internal/strategy/declared"
)

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
