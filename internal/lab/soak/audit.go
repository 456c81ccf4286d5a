package soak

import (
	"context"
	"fmt"
	"strings"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/load"
)

// Account is what became of the items and customers of one shelf: SQL counts, compared with the
// answers.
type Account struct {
	Strategy string // or mixed
	Items    int    // that were sold at all

	Orders      int   // rows
	Answers     int   // customers who got a 201
	Replayed    int   // of them, those with a repeated request
	Doubtful    int   // customers who got no clear answer at first
	Refused     int   // customers with an answer that nothing was sold
	Oversold    int64 // units beyond the stock
	LostUpdates int64 // units sold that are not taken off the stock, or the other way round

	Initial, Restocked, Corrected, Cancelled, Sold, Left int64 // units; those sold are in orders that stand

	AnswersWithoutOrder int // 201s without exactly this order
	OrdersWithoutAnswer int // orders of customers with another answer, or none
	Duplicates          int // orders beyond the first for one customer
	Keyless             int // orders without a customer's key

	Examples []string // the first few customers with one of these
}

// audit counts. No request may be in flight any more.
func (s *soak) audit(ctx context.Context, r *Report) error {
	s.customers.mu.Lock()
	defer s.customers.mu.Unlock()
	r.Purchases, r.Busy, r.Repeats = len(s.customers.purchases), s.customers.busy, s.customers.repeats
	for i, failure := range s.customers.failures {
		if i == 5 {
			r.find("and %d more such answers", len(s.customers.failures)-i)
			break
		}
		r.find("%s", failure)
	}
	for _, shelf := range s.shelves {
		a := Account{Strategy: shelf.name(), Items: shelf.at + 1}
		orders := map[string][]uint64{} // by key
		for _, item := range shelf.items[:shelf.at+1] {
			counted, err := audit.Count(ctx, s.store, item)
			if err != nil {
				return err
			}
			a.Oversold += counted.Oversold
			a.LostUpdates += max(counted.LostUpdates, -counted.LostUpdates) // those of two items must not cancel out
			a.Initial += counted.InitialStock
			a.Restocked += counted.Restocked
			a.Corrected += counted.Corrected
			a.Cancelled += counted.Cancelled
			a.Sold += counted.Sold
			a.Left += counted.Remaining
			rows, err := s.store.ItemOrders(ctx, item.ItemID)
			if err != nil {
				return err
			}
			for _, row := range rows {
				a.Orders++
				if row.IdempotencyKey == nil {
					a.Keyless++
					continue
				}
				orders[*row.IdempotencyKey] = append(orders[*row.IdempotencyKey], row.ID)
			}
		}
		for _, p := range s.customers.purchases {
			if s.customers.lanes[p.lane].shelf == shelf {
				a.compare(p, orders[p.key])
				delete(orders, p.key)
			}
		}
		for _, unasked := range orders {
			a.OrdersWithoutAnswer += len(unasked)
		}
		r.Accounts = append(r.Accounts, a)
		r.judge(a)
	}
	return nil
}

// compare compares the answer to a customer with the orders under the customer's key.
func (a *Account) compare(p *purchase, orders []uint64) {
	if p.doubtful {
		a.Doubtful++
	}
	if p.outcome == load.Sold && (len(orders) != 1 || orders[0] != p.order) || p.outcome != load.Sold && len(orders) > 0 {
		a.example(p, orders)
	}
	if len(orders) > 1 {
		a.Duplicates += len(orders) - 1
	}
	switch {
	case p.outcome != load.Sold:
		a.Refused++
		a.OrdersWithoutAnswer += len(orders)
		return
	case len(orders) == 0 || orders[0] != p.order:
		a.AnswersWithoutOrder++
	}
	a.Answers++
	if p.replayed {
		a.Replayed++
	}
}

func (a *Account) example(p *purchase, orders []uint64) {
	const few = 3
	if len(a.Examples) < few {
		a.Examples = append(a.Examples, fmt.Sprintf("%s was answered %s, and has the orders %v", p.key, strings.Join(p.story, ", "), orders))
	}
}
