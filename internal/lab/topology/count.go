package topology

import (
	"context"
	"slices"
	"strconv"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/count"
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
	theirs, standing := map[string][]count.Order{}, map[string]stock.Order{}
	for _, o := range orders {
		if o.CancelledAt == nil {
			theirs[o.RequestID] = append(theirs[o.RequestID], count.Order{ID: o.PublicID, Units: count.Units{o.ItemID: o.Quantity}})
			standing[o.RequestID] = o
		}
	}
	r.Sold, r.Remaining, r.Oversold, r.LostUpdates = counts.Sold, counts.Remaining, counts.Oversold, counts.LostUpdates
	r.Promised = counts.Sold
	soldOut, failed := false, ""
	purchases := make([]count.Purchase, len(c.buyers))
	for i, b := range c.buyers {
		r.Requests++
		sold, _ := b.answer.Sale()
		p := count.Purchase{
			Wants: count.Units{c.item.ItemID: b.quantity}, Orders: theirs[b.request],
			Answers: []count.Answer{{Outcome: b.answer.Outcome, Order: sold.PublicID}},
		}
		purchases[i] = p
		switch outcome := b.answer.Outcome; {
		case outcome == load.Sold:
			r.Answered++
			r.Promised += p.Facts().Unordered * b.quantity
		case outcome.Denies():
			r.Refused++
			soldOut = soldOut || outcome == load.SoldOut
		case outcome == load.Failed:
			r.Errors++
			failed = strconv.Itoa(b.answer.Status) + " " + string(b.answer.Body) + "\nthe shop's log: " + c.testbed.Shops[b.shop].LogLine(`"request":"`+b.request+`"`)
		default:
			r.Unknown++
		}
	}
	r.Differ(count.Facts(slices.Values(purchases)))
	if soldOut {
		r.Left = max(0, r.Remaining)
	}
	f := r.Facts()
	f.DemandLeft, f.FirstError, f.Stuck = true, failed, c.stuck
	return f, standing, nil
}
