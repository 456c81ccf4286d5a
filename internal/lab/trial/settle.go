package trial

import (
	"context"
	"maps"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/count"
	"stocklock/internal/lab/seen"
)

// A cell has settled when there were no new orders for so long. It is judged after settlePatience
// whether it has or not.
const (
	settled        = 2 * time.Second
	settlePatience = 10 * time.Second
)

// measure counts answers and orders when all is at rest: at once, or after a lease without new
// orders where an answer is missing. Orders that are missing may still be on their way.
func (a *attack) measure(ctx context.Context, r *Result) error {
	r.count(a)
	r.Deadlocks = a.deadlocks()
	quiet := time.Duration(0)
	if a.customers.unknown() {
		quiet = a.o.Lease
	}
	return settle(ctx, func() (int64, time.Duration, error) {
		err := a.countOrders(ctx, r)
		if r.AnswersWithoutOrder > 0 || r.Remaining > 0 && a.stuck == nil {
			return r.Sold, settled, err
		}
		return r.Sold, quiet, err
	})
}

// settle counts until there was nothing new for as long as count says, and no longer than
// settlePatience.
func settle(ctx context.Context, count func() (n int64, quiet time.Duration, err error)) error {
	began := time.Now()
	last, since := int64(-1), began
	done, err := seen.Until(ctx, countEvery, func() (bool, error) {
		n, quiet, err := count()
		if n != last {
			last, since = n, time.Now()
		}
		return time.Since(since) >= quiet || time.Since(began) > settlePatience, err
	})
	if err == nil && !done {
		err = context.Cause(ctx)
	}
	return err
}

// countEvery is how often a cell that has not settled is counted.
const countEvery = 20 * time.Millisecond

// countOrders has the database count, and compares the orders with the answers in both directions.
func (a *attack) countOrders(ctx context.Context, r *Result) error {
	counted, err := audit.Count(ctx, a.Store, a.item)
	if err != nil {
		return err
	}
	orders, err := a.standing(ctx)
	if err != nil {
		return err
	}
	r.Sold, r.Remaining, r.Oversold = counted.Sold, counted.Remaining, counted.Oversold
	r.Restocked, r.LostUpdates = counted.Restocked, counted.LostUpdates
	r.Differ(count.Facts(maps.Values(a.purchases(orders))))
	r.Left, a.sentAway = a.unitsLeft(orders)
	if endsSoldOut(a.customers.hits, r.Remaining) {
		r.Left = max(r.Left, r.Remaining)
	}
	return nil
}
