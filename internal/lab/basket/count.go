package basket

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/sale"
)

// bought is what an order has of each item.
type bought map[uint64]int64

// count compares the orders with the stock and with the customers' answers, by SQL and by the counters of
// Redis. All that was under way is over.
func (c *cell) count(ctx context.Context, r *trial.Result) (verdict.Facts, error) {
	orders, err := c.orders(ctx)
	if err != nil {
		return verdict.Facts{}, err
	}
	left := map[uint64]int64{}
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
	for _, of := range c.customers {
		failed = cmp.Or(failed, c.compare(of, orders, left, r))
		r.Requests++
	}
	f := r.Facts()
	f.FirstError, f.DemandLeft = failed, true
	if c.stuckAt != "" {
		f.Stuck, f.Waiting = true, &verdict.Waiting{Lock: c.stuckAt}
	}
	return f, nil
}

// compare counts what is wrong with the orders of a customer. It returns an answer that should not be.
func (c *cell) compare(of *customer, orders map[string][]bought, left map[uint64]int64, r *trial.Result) (failed string) {
	wanted := bought{}
	for _, line := range of.lines {
		wanted[c.items[line].ItemID]++
	}
	theirs := orders[of.request]
	r.Duplicates += int64(max(0, len(theirs)-1))
	for _, order := range theirs {
		if !maps.Equal(order, wanted) {
			r.HalfSold++
		}
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	switch outcome := of.answer.Outcome; {
	case outcome == load.Sold:
		r.Answered++
		if len(theirs) == 0 {
			r.AnswersWithoutOrder++
		}
	case outcome == load.Failed:
		r.Errors++
		failed = strconv.Itoa(of.answer.Status) + " " + string(of.answer.Body) + "\nthe shop's log: " + c.bench.Testbed.Shops[of.shop].LogLine(`"request":"`+of.request+`"`)
	case outcome == load.Unknown || outcome == load.Refused:
		r.Unknown++
	default:
		r.Refused++
		if len(theirs) > 0 {
			r.Denied++
		}
		available := true
		for item, units := range wanted {
			available = available && left[item] >= units
		}
		if available && !of.beside {
			r.Left += int64(len(of.lines))
		}
	}
	return failed
}

// orders has what stands, by the request of the customer.
func (c *cell) orders(ctx context.Context) (map[string][]bought, error) {
	rows, err := c.bench.Store.Pool().QueryContext(ctx, "SELECT COALESCE(line_of, id), item_id, quantity, request_id FROM orders"+
		" WHERE run = ? AND cancelled_at IS NULL ORDER BY 1", c.id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := map[string]map[uint64]bought{}
	for rows.Next() {
		var of, item uint64
		var units int64
		var request string
		if err := rows.Scan(&of, &item, &units, &request); err != nil {
			return nil, err
		}
		if found[request] == nil {
			found[request] = map[uint64]bought{}
		}
		if found[request][of] == nil {
			found[request][of] = bought{}
		}
		found[request][of][item] += units
	}
	all := map[string][]bought{}
	for request, orders := range found {
		all[request] = slices.Collect(maps.Values(orders))
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
