package crashes

import (
	"context"
	"fmt"
	"io"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/stock"
)

// Report is what a run showed. Counts of orders come from SQL, counts of answers from the customers.
type Report struct {
	Options
	Took  time.Duration // until the item was sold out
	Kills int

	Orders    int64
	Remaining int64
	Oversold  int64

	Answers  int // customers whose first answer was a 201
	Resolved int // customers whose outcome was unknown, until a repeat had a 201
	Unknown  int // requests without a clear answer

	AnswersWithoutOrder int // 201s without exactly this order
	OrdersWithoutAnswer int // orders of customers with another answer
	Repeated            int // orders beyond the first under one key

	Failures []string // unexpected answers
}

// Held reports whether all units were sold, and whether the orders are those that were answered.
func (r Report) Held() bool {
	return r.Orders == r.Sales && r.Remaining == 0 && r.Oversold == 0 && r.Orders == int64(r.Answers+r.Resolved) &&
		r.AnswersWithoutOrder == 0 && r.OrdersWithoutAnswer == 0 && r.Repeated == 0 && len(r.Failures) == 0
}

// count has the database count, and compares each order with its customer's answer.
func (r *Report) count(ctx context.Context, store *stock.Store, item audit.Run, c *customers) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Answers, r.Resolved, r.Unknown, r.Failures = c.answers, c.resolved, c.unknown, c.failures
	counts, err := audit.Count(ctx, store, item)
	if err != nil {
		return err
	}
	r.Orders, r.Remaining, r.Oversold = counts.Orders, counts.Remaining, counts.Oversold
	rows, err := store.Pool().QueryContext(ctx, "SELECT id, idempotency_key FROM orders WHERE item_id = ?", item.ItemID)
	if err != nil {
		return fmt.Errorf("read the orders: %w", err)
	}
	defer rows.Close()
	ordered := make([]bool, len(c.bought))
	for rows.Next() {
		var id uint64
		var name string
		if err := rows.Scan(&id, &name); err != nil {
			return fmt.Errorf("read the orders: %w", err)
		}
		customer, err := customerOf(name)
		switch {
		case err != nil || customer >= len(c.bought) || c.bought[customer] == 0:
			r.OrdersWithoutAnswer++
		case ordered[customer]:
			r.Repeated++
		default:
			ordered[customer] = c.bought[customer] == id || c.bought[customer] == anyID
		}
	}
	for customer, id := range c.bought {
		if id != 0 && !ordered[customer] {
			r.AnswersWithoutOrder++
		}
	}
	return rows.Err()
}

// Print writes the report for people.
func (r Report) Print(out io.Writer) {
	line := func(what string, count any) { fmt.Fprintf(out, "%-44s %9v\n", what, count) }
	line("units", r.Sales)
	line("kills of a shop", r.Kills)
	line("sales a second", int64(float64(r.Orders)/max(r.Took.Seconds(), 0.001)))
	line("orders", r.Orders)
	line("  answered at once", r.Answers)
	line("  unknown at first, resolved by a repeat", r.Resolved)
	line("requests without a clear answer", r.Unknown)
	line("units left", r.Remaining)
	line("units oversold", r.Oversold)
	line("answers without their order", r.AnswersWithoutOrder)
	line("orders without an answer", r.OrdersWithoutAnswer)
	line("orders beyond the first under one key", r.Repeated)
	line("unexpected answers", len(r.Failures))
	for _, failure := range r.Failures[:min(len(r.Failures), 5)] {
		fmt.Fprintf(out, "  %s\n", failure)
	}
	verdict := "held: the orders are the answers"
	if !r.Held() {
		verdict = "broken"
	}
	fmt.Fprintf(out, "%s by %s, in %s\n", verdict, r.Strategy.Name, r.Took.Round(time.Second))
}
