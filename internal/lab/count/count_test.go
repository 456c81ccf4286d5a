package count_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"stocklock/internal/lab/count"
	"stocklock/internal/lab/load"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// answer is one to a request that was under way from one millisecond to another.
func answer(from, to int, outcome load.Outcome, order ...string) count.Answer {
	at := func(ms int) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }
	return count.Answer{Outcome: outcome, Order: fmt.Sprint(append(order, "")[0]), Sent: at(from), At: at(to)}
}

func order(id string, units ...int64) count.Order {
	o := count.Order{ID: id, Units: count.Units{}}
	for i, n := range units {
		if n > 0 {
			o.Units[uint64(i+1)] = n
		}
	}
	return o
}

// TestPayments compares what a customer has paid with its orders.
func TestPayments(t *testing.T) {
	for _, tt := range []struct {
		paid, orders, unpaid, unserved int64
	}{{1, 1, 0, 0}, {0, 1, 1, 0}, {1, 0, 0, 1}, {2, 1, 0, 1}, {0, 0, 0, 0}} {
		p := count.Purchase{Paid: &tt.paid}
		for n := range tt.orders {
			p.Orders = append(p.Orders, order(fmt.Sprint(n), 1))
		}
		if f := count.Facts(slices.Values([]count.Purchase{p})); f.Unpaid != tt.unpaid || f.Unserved != tt.unserved {
			t.Errorf("%d payments and %d orders: %d unpaid, %d unserved", tt.paid, tt.orders, f.Unpaid, f.Unserved)
		}
	}
}

func TestPurchases(t *testing.T) {
	type answers = []count.Answer
	type orders = []count.Order
	one, two, both := order("", 1).Units, order("", 2).Units, order("", 1, 1).Units
	sold, busy, silent := answer(0, 1, load.Sold), answer(0, 1, load.Busy), answer(0, 1, load.Unknown)
	for _, tt := range []struct {
		what    string
		wants   count.Units
		answers answers
		orders  orders
		want    string // twice, half-sold, unordered, unanswered, denied, decided
	}{
		{"sold", one, answers{sold}, orders{order("p", 1)}, "0 0 0 0 0 1"},
		{"sold, without an order", one, answers{sold}, nil, "0 0 1 0 0 1"},
		{"sold, with another order than in the answer", one, answers{answer(0, 1, load.Sold, "q")}, orders{order("p", 1)}, "0 0 1 0 0 1"},
		{"sold, with the order of the answer", one, answers{answer(0, 1, load.Sold, "p")}, orders{order("p", 1)}, "0 0 0 0 0 1"},
		{"sold, with fewer units", two, answers{sold}, orders{order("p", 1)}, "0 0 1 0 0 1"},
		{"sold, with another item", one, answers{sold}, orders{order("p", 0, 1)}, "0 0 1 0 0 1"},
		{"sold, and nobody knows what was wanted", nil, answers{sold}, orders{order("p", 7)}, "0 0 0 0 0 1"},
		{"two orders of a request", one, answers{sold}, orders{order("p", 1), order("q", 1)}, "1 0 0 0 0 1"},
		{"two answers with one order", one, answers{sold, answer(2, 3, load.Sold)}, orders{order("p", 1)}, "0 0 0 0 0 1"},
		{"busy, with an order", one, answers{busy}, orders{order("p", 1)}, "0 0 0 1 1 1"},
		{"fenced, with an order", one, answers{answer(0, 1, load.Fenced)}, orders{order("p", 1)}, "0 0 0 1 1 1"},
		{"no answer, with an order", one, answers{silent}, orders{order("p", 1)}, "0 0 0 1 0 1"},
		{"no answer, without one", one, answers{silent}, nil, "0 0 0 0 0 0"},
		{"busy, without one", one, answers{busy}, nil, "0 0 0 0 0 0"},
		{"sold out", one, answers{answer(0, 1, load.SoldOut)}, nil, "0 0 0 0 0 1"},
		{"no answer, and the repeat was sold out", one, answers{silent, answer(2, 3, load.SoldOut)}, nil, "0 0 0 0 0 1"},
		{"refused at the door, twice", both, answers{answer(0, 1, load.Refused), answer(2, 3, load.Refused)}, nil, "0 0 0 0 0 0"},
		{"an error", one, answers{answer(0, 1, load.Failed)}, nil, "0 0 0 0 0 0"},
		{"reserved", one, answers{answer(0, 1, load.Done)}, nil, "0 0 0 0 0 1"},
		{"an error, with an order", one, answers{answer(0, 1, load.Failed)}, orders{order("p", 1)}, "0 0 0 1 0 1"},
		{"no answer, and the repeat was rejected as busy", one, answers{silent, answer(2, 3, load.Busy)}, orders{order("p", 1)}, "0 0 0 1 0 1"},
		{"busy, and the repeat sold", one, answers{busy, answer(2, 3, load.Sold)}, orders{order("p", 1)}, "0 0 0 0 0 1"},
		{"sold, and then sold out", one, answers{sold, answer(2, 3, load.SoldOut)}, orders{order("p", 1)}, "0 0 0 0 1 1"},
		{"sold out beside the sale", one, answers{answer(0, 4, load.Sold), answer(2, 3, load.SoldOut)}, orders{order("p", 1)}, "0 0 0 0 0 1"},
		{"an order that nobody asked for", nil, nil, orders{order("p", 1)}, "0 0 0 1 1 1"},
		{"two items sold", both, answers{sold}, orders{order("p", 1, 1)}, "0 0 0 0 0 1"},
		{"one of two items sold", both, answers{sold}, orders{order("p", 1)}, "0 1 0 0 0 1"},
		{"one of two items, and busy", both, answers{busy}, orders{order("p", 0, 1)}, "0 1 0 1 1 1"},
	} {
		p := count.Purchase{Wants: tt.wants, Answers: tt.answers, Orders: tt.orders}
		f := count.Facts(slices.Values([]count.Purchase{p}))
		if got := fmt.Sprint(f.Twice, f.HalfSold, f.Unordered, f.Unanswered, f.Denied, f.Decided); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.what, got, tt.want)
		}
	}
}
