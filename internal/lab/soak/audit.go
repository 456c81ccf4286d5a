package soak

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/count"
	"stocklock/internal/lab/load"
)

// Account is what became of items with the same strategies, and of their customers: SQL counts,
// compared with the answers.
type Account struct {
	Strategy string // or mixed
	Items    int    // that were sold at all

	Orders      int
	Lines       int   // rows
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
	Torn                int // orders without all their lines
	Keyless             int // rows without a customer's key
	OverLimit           int // customers with more units of an item than one may have

	Examples []string // the first few customers with one of these
}

// order is a row of orders, with the id of its order, that as its customer is told it, and the customer whose key it has.
type order struct {
	of, public uint64
	customer   int
}

// audit counts. No request may be in flight any more.
func (s *soak) audit(ctx context.Context, r *Report) error {
	c := s.customers
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Purchases, r.Bought, r.Busy, r.Limited, r.Repeats = len(c.bought), c.sold, c.busy, c.limited, c.repeats
	for i, failure := range c.failures {
		if i == 5 {
			r.find("and %d more such answers", len(c.failures)-i)
			break
		}
		r.find("%s", failure)
	}
	for _, items := range s.items {
		a := Account{Strategy: items.name(), Items: len(items.sold()), Replayed: items.replayed}
		var orders []order
		for _, item := range items.sold() {
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
			if orders, err = s.appendOrders(ctx, orders, item, &a); err != nil {
				return err
			}
			if items.ahead > 0 {
				over, err := s.overLimit(ctx, item)
				if err != nil {
					return err
				}
				a.OverLimit += over
			}
		}
		a.compare(c, items, orders)
		r.Accounts = append(r.Accounts, a)
		r.judge(a)
	}
	return nil
}

// appendOrders reads the orders of an item. There may be millions.
func (s *soak) appendOrders(ctx context.Context, orders []order, item audit.Run, a *Account) ([]order, error) {
	rows, err := s.store.Pool().QueryContext(ctx, "SELECT o.id, first.id, COALESCE(first.public_id, ''), COALESCE(first.idempotency_key, '') FROM orders o"+
		" JOIN orders first ON first.id = COALESCE(o.line_of, o.id) WHERE o.item_id = ? ORDER BY o.id", item.ItemID)
	if err != nil {
		return nil, fmt.Errorf("read the orders: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, of uint64
		var public, key string
		if err := rows.Scan(&id, &of, &public, &key); err != nil {
			return nil, fmt.Errorf("read the orders: %w", err)
		}
		a.Lines++
		a.Orders += one(id == of)
		if customer, ok := s.customers.customerOf(key); ok {
			orders = append(orders, order{of, idOf(public), customer})
		} else {
			a.Keyless++
		}
	}
	return orders, rows.Err()
}

// overLimit counts the subjects that have too many units of an item in orders that stand.
func (s *soak) overLimit(ctx context.Context, item audit.Run) (over int, err error) {
	err = s.store.Pool().QueryRowContext(ctx, "SELECT COUNT(*) FROM (SELECT subject FROM orders WHERE item_id = ? AND cancelled_at IS NULL"+
		" GROUP BY subject HAVING SUM(quantity) > ?) over_limit", item.ItemID, limit).Scan(&over)
	return over, err
}

// compare compares the answers to the customers of some items with the orders under their keys. The rows of an order
// are told from each other by their place in it: a customer has one of each item.
func (a *Account) compare(c *customers, items *items, orders []order) {
	slices.SortStableFunc(orders, func(x, y order) int { return cmp.Or(cmp.Compare(x.customer, y.customer), cmp.Compare(x.of, y.of)) })
	for n, id := range c.bought {
		rows := 0
		for rows < len(orders) && orders[rows].customer == n {
			rows++
		}
		theirs := orders[:rows]
		orders = orders[rows:]
		if c.offer(n).items != items {
			a.OrdersWithoutAnswer += len(theirs)
			continue
		}
		if p := c.repeated[n]; p != nil && !p.doubted.IsZero() {
			a.Doubtful++
		}
		p := count.Purchase{Wants: count.Units{}, Answers: []count.Answer{{Outcome: load.Busy}}}
		for line := range c.size(n) {
			p.Wants[uint64(line)] = 1
		}
		switch id {
		case 0:
			a.Refused++
		case anyID:
			p.Answers[0].Outcome = load.Sold
		default:
			p.Answers[0] = count.Answer{Outcome: load.Sold, Order: fmt.Sprintf("%x", id)}
		}
		if id != 0 {
			a.Answers++
		}
		for i, row := range theirs {
			if i == 0 || row.of != theirs[i-1].of {
				p.Orders = append(p.Orders, count.Order{ID: fmt.Sprintf("%x", row.public), Units: count.Units{}})
			}
			of := p.Orders[len(p.Orders)-1].Units
			of[uint64(len(of))] = 1
		}
		f := p.Facts()
		a.OrdersWithoutAnswer += int(f.Unanswered)
		a.Duplicates += int(f.Twice)
		a.AnswersWithoutOrder += int(f.Unordered)
		a.Torn += int(f.HalfSold)
		if f.Unanswered+f.Twice+f.Unordered+f.HalfSold > 0 {
			a.example(c, n, "has the orders %v", p.Orders)
		}
	}
}

func (a *Account) example(c *customers, customer int, format string, args ...any) {
	const few = 3
	if len(a.Examples) >= few {
		return
	}
	story := "at once"
	if p := c.repeated[customer]; p != nil {
		story = strings.Join(p.story, ", ")
	}
	a.Examples = append(a.Examples, fmt.Sprintf("%s, answered %s, %s", c.key(customer), story, fmt.Sprintf(format, args...)))
}
