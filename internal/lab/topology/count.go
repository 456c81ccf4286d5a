package topology

import (
	"context"
	"strconv"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/stock"
)

// count compares the orders of the server that counts with the stock and with the customers' answers.
// It returns the orders that stand, by request.
func (c *cell) count(ctx context.Context, r *trial.Result) (verdict.Facts, map[string]stock.Order, error) {
	counts, err := audit.Count(ctx, c.store, c.item)
	if err != nil {
		return verdict.Facts{}, nil, err
	}
	orders, err := c.store.ItemOrders(ctx, c.item.ItemID)
	if err != nil {
		return verdict.Facts{}, nil, err
	}
	theirs, standing := map[string]int64{}, map[string]stock.Order{}
	for _, o := range orders {
		if o.CancelledAt == nil {
			theirs[o.RequestID]++
			standing[o.RequestID] = o
		}
	}
	r.Sold, r.Remaining, r.Oversold, r.LostUpdates = counts.Sold, counts.Remaining, counts.Oversold, counts.LostUpdates
	r.Promised = counts.Sold
	soldOut, failed := false, ""
	for _, b := range c.buyers {
		r.Requests++
		stand := theirs[b.request]
		r.Duplicates += max(0, stand-1)
		switch outcome := b.answer.Outcome; {
		case outcome == load.Sold:
			r.Answered++
			if stand == 0 {
				r.AnswersWithoutOrder++
				r.Promised += b.quantity
			}
		case outcome.Denies():
			r.Refused++
			if stand > 0 {
				r.Denied++
			}
			soldOut = soldOut || outcome == load.SoldOut
		case outcome == load.Failed:
			r.Errors++
			failed = strconv.Itoa(b.answer.Status) + " " + string(b.answer.Body) + "\nthe shop's log: " + c.testbed.Shops[b.shop].LogLine(`"request":"`+b.request+`"`)
		default:
			r.Unknown++
		}
	}
	if soldOut {
		r.Left = max(0, r.Remaining)
	}
	f := r.Facts()
	f.DemandLeft, f.FirstError, f.Stuck = true, failed, c.stuck
	return f, standing, nil
}
