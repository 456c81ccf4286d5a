package basket

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/count"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/sale"
)

// count compares the orders with the stock and with the customers' answers, by SQL and by the counters of
// Redis. All that was under way is over.
func (c *cell) count(ctx context.Context, r *trial.Result) (verdict.Facts, error) {
	orders, err := c.orders(ctx)
	if err != nil {
		return verdict.Facts{}, err
	}
	left := count.Units{}
	for _, item := range c.items {
		counts, err := audit.Count(ctx, c.bench.Store, item)
		if err != nil {
			return verdict.Facts{}, err
		}
		counted, ok, err := c.counter(ctx, item.ItemID)
		if err != nil {
			return verdict.Facts{}, err
		}
		if !ok {
			counted = counts.Remaining
		}
		forSale := min(counts.Remaining, counted) // nobody gets more than both have
		unsold := item.InitialStock - counts.Sold
		left[item.ItemID] = max(0, forSale)
		r.InitialStock += item.InitialStock
		r.Sold += counts.Sold
		r.Remaining += max(0, forSale)
		r.Oversold += counts.Oversold
		r.Unclaimed += max(0, unsold-forSale)
		if counts.Oversold == 0 {
			r.LostUpdates += max(0, max(counts.Remaining, counted)-unsold)
		}
	}
	var failed string
	purchases := make([]count.Purchase, len(c.customers))
	for i, of := range c.customers {
		p := count.Purchase{Wants: count.Units{}, Orders: orders[of.request]}
		for _, line := range of.lines {
			p.Wants[c.items[line].ItemID]++
		}
		of.mu.Lock()
		sold, _ := of.answer.Sale()
		p.Answers = []count.Answer{{Outcome: of.answer.Outcome, Order: sold.PublicID}}
		of.mu.Unlock()
		purchases[i] = p
		r.Requests++
		failed = cmp.Or(failed, c.countAnswer(of, p.Wants, left, r))
	}
	r.Differ(count.Facts(slices.Values(purchases)))
	f := r.Facts()
	f.FirstError, f.DemandLeft = failed, true
	if c.stuckAt != "" {
		f.Stuck, f.Waiting = true, &verdict.Waiting{Lock: c.stuckAt}
	}
	return f, nil
}

// countAnswer counts the answer of a customer, and the units that were there for one who was refused. It returns
// an answer that should not be.
func (c *cell) countAnswer(of *customer, wants, left count.Units, r *trial.Result) (failed string) {
	of.mu.Lock()
	defer of.mu.Unlock()
	switch outcome := of.answer.Outcome; {
	case outcome == load.Sold:
		r.Answered++
	case outcome == load.Failed:
		r.Errors++
		failed = strconv.Itoa(of.answer.Status) + " " + string(of.answer.Body) + "\nthe shop's log: " + c.bench.Testbed.Shops[of.shop].LogLine(`"request":"`+of.request+`"`)
	case outcome == load.Unknown || outcome == load.Refused:
		r.Unknown++
	default:
		r.Refused++
		available := !of.beside
		for item, units := range wants {
			available = available && left[item] >= units
		}
		if available {
			r.Left += int64(len(of.lines))
		}
	}
	return failed
}

// orders has what stands, by the request of the customer.
func (c *cell) orders(ctx context.Context) (map[string][]count.Order, error) {
	rows, err := c.bench.Store.Pool().QueryContext(ctx, "SELECT COALESCE(line_of, id), COALESCE(public_id, ''), item_id, quantity, request_id FROM orders"+
		" WHERE run = ? AND cancelled_at IS NULL ORDER BY request_id, 1, id", c.id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all, last := map[string][]count.Order{}, uint64(0)
	for rows.Next() {
		var of, item uint64
		var units int64
		var id, request string // only the first row has the id
		if err := rows.Scan(&of, &id, &item, &units, &request); err != nil {
			return nil, err
		}
		if of != last {
			all[request], last = append(all[request], count.Order{ID: id, Units: count.Units{}}), of
		}
		theirs := all[request]
		theirs[len(theirs)-1].Units[item] += units
	}
	return all, rows.Err()
}

// counter returns the counter of an item in Redis, where the way has one.
func (c *cell) counter(ctx context.Context, item uint64) (units int64, ok bool, err error) {
	if !c.of.Counts() {
		return 0, false, nil
	}
	key := strings.ReplaceAll(c.of.State.Keys[0], "%s", sale.Key(item))
	counted := c.redis.Do(ctx, "GET", key)
	if counted.Value == nil {
		return 0, false, counted.Err
	}
	units, err = counted.Int64()
	return units, err == nil, err
}
