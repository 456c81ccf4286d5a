package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"stocklock/internal/shop/labmode"
)

// TestPossession: a lock outlasts the commit, a row does not, and a counter is nobody's.
func TestPossession(t *testing.T) {
	const redis, mysql = labmode.RedisServer, labmode.MySQLServer
	p := Possession{Items: 2}
	for _, tt := range []struct {
		who, step, server, sent, answer string
		item                            int
		has                             []string
		waiting                         []string
	}{
		{"A", "set", redis, "SETNX {stock:1}:units 2", "1", 1, []string{"", ""}, nil},
		{"A", "set2", redis, "EVALSHA set stock:1 stock:2", "1", 0, []string{"A", "A"}, nil},
		{"B", "set", redis, "EVALSHA set stock:1 stock:2", "0", 0, []string{"A", "A"}, []string{"B for 1"}},
		{"A", "update", mysql, "UPDATE", "ok", 1, []string{"A", "A"}, []string{"B for 1"}},
		{"C", "update", mysql, "UPDATE", "ok", 2, []string{"A", "A, C"}, []string{"B for 1"}},
		{"A", "commit", mysql, "COMMIT", "ok", 0, []string{"A", "A, C"}, []string{"B for 1"}},
		{"A", "release", redis, "EVALSHA release stock:2", "1", 2, []string{"A", "C"}, []string{"B for 1"}},
		{"A", "release2", redis, "EVALSHA release stock:1", "1", 1, []string{"", "C"}, []string{"B for 1"}},
		{"C", "commit", mysql, "COMMIT", "ok", 0, []string{"", ""}, []string{"B for 1"}},
		{"B", "set2", redis, "EVALSHA set stock:1 stock:2", "1", 0, []string{"B", "B"}, nil},
	} {
		p.After(Entry{Choice: Choice{Customer: Customer(tt.who[0] - 'A'), Step: tt.step}, Customer: tt.who, Server: tt.server, Sent: tt.sent, Answer: tt.answer, Item: tt.item, Tx: tt.server == mysql})
		var s State
		if p.Put(&s); !slices.Equal(s.Has, tt.has) || !slices.Equal(s.Waiting, tt.waiting) {
			t.Errorf("after %s.%s: %q have the items, %q wait; want %q, %q", tt.who, tt.step, s.Has, s.Waiting, tt.has, tt.waiting)
		}
	}
}

// TestOrdersOfSeveralItems: the rows of a customer are joined to orders, and each must have all that was wanted.
func TestOrdersOfSeveralItems(t *testing.T) {
	for rows, want := range map[string]string{"": "lied 1", "1 2": "unclaimed 6", "1": "half-sold 1", "1 1": "twice 1", "1 2 1 2": "twice 1"} {
		r := Record{Customers: 1, Outcome: Outcome{Stock: 4, Items: 2, Answers: map[string]string{"A": "sold"}, Ordinary: "sold_out"}}
		for item := range strings.FieldsSeq(rows) {
			r.Outcome.Orders = append(r.Outcome.Orders, Order{Customer: "A", Item: int(item[0] - '0')})
		}
		r.Decide()
		if got := fmt.Sprint(r.Outcome.Verdict, " ", r.Outcome.N); got != want {
			t.Errorf("rows of the items %q: %s, want %s", rows, got, want)
		}
	}
}
