package trial

import (
	"context"
	"fmt"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/load"
	"stocklock/internal/stock"
)

// oneByOne lets customers come one after another, once the attack is over. Each waits for its answer,
// and nothing else is under way: what each must be answered follows from the units that are there.
//
// First come those who have reason to ask again. Then, where the item is sold out and nothing is amiss,
// each shop says so once. The item is restocked, so that each shop has to forget it. Then each sells
// two units. Of two that are left, one is sold, and sold again under its key. Two are more than
// are left then, and one is the last.
func (a *attack) oneByOne(ctx context.Context) {
	if a.cell.Scenario.Comparable || a.stuck != nil || ctx.Err() != nil {
		return
	}
	shops := len(a.bench.Shops)
	for shop := 0; len(a.customers.wishes.again) > 0; shop++ {
		a.alone(ctx, shop%shops, a.customers.wishes.repeated())
	}
	there, err := audit.Count(ctx, a.bench.Store, a.item)
	if err == nil && there.Remaining > 0 && a.keepsUnits() {
		// Units of requests that came to nothing may return late, when all others have been told that the
		// item is sold out.
		if err = a.noNewOrders(ctx, 2*a.o.Lease); err == nil {
			for i := range there.Remaining {
				a.alone(ctx, int(i)%shops, wish{quantity: 1})
			}
			there, err = audit.Count(ctx, a.bench.Store, a.item)
		}
	}
	if err != nil || there.Remaining != 0 || there.LostUpdates != 0 || !a.restockable() {
		return // measure counts once more
	}
	for shop := range shops {
		a.alone(ctx, shop, wish{quantity: 1})
	}
	units := int64(2*shops + 2)
	if err := a.restock(ctx, units); err != nil {
		if ctx.Err() == nil {
			a.problems.add(err)
		}
		return
	}
	for shop := range shops {
		a.alone(ctx, shop, wish{quantity: 2})
	}
	one := a.customers.wishes.keyed(len(a.customers.hits))
	for i, w := range []wish{one, one, {quantity: 2}, {quantity: 1}, {quantity: 1}} {
		a.alone(ctx, i%shops, w)
	}
}

// keepsUnits reports whether the strategy keeps units of a sale besides the item's row.
func (a *attack) keepsUnits() bool {
	return a.cell.Strategy.State.Remaining != "" || len(a.cell.Strategy.State.Keys) > 0
}

// noNewOrders waits until there were no new orders for a time, and no longer than settlePatience.
func (a *attack) noNewOrders(ctx context.Context, quiet time.Duration) error {
	began := time.Now()
	orders, since := int64(-1), began
	for time.Since(since) < quiet && time.Since(began) < settlePatience {
		counted, err := audit.Count(ctx, a.bench.Store, a.item)
		if err != nil {
			return err
		}
		if counted.Orders != orders {
			orders, since = counted.Orders, time.Now()
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(countEvery):
		}
	}
	return nil
}

// restockable reports whether units that come to the item's row are sold. A strategy that keeps all
// units elsewhere never finds them. One that is not mixable may undo a restock, if somebody has read
// the stock before it: without an answer, a sale may still be under way.
func (a *attack) restockable() bool {
	of := a.cell.Strategy
	if of.Mixable {
		return true
	}
	for _, h := range a.customers.hits {
		if h.Outcome == load.Unknown && h.Status == 0 && !broken(h.Answer) {
			return false
		}
	}
	return len(of.State.Setup) == 0 && len(of.State.Keys) == 0
}

func (a *attack) restock(ctx context.Context, n int64) error {
	by := stock.Author{Subject: "lab", IdempotencyKey: fmt.Sprintf("restock-%s", a.item.ID), RequestID: a.item.ID, Shop: "lab"}
	if _, err := a.bench.Store.Restock(ctx, by, a.item.ItemID, n); err != nil {
		return fmt.Errorf("restock: %w", err)
	}
	a.restocks = append(a.restocks, units{time.Now(), n})
	return nil
}

// alone sends one request and waits for its answer.
func (a *attack) alone(ctx context.Context, shop int, w wish) {
	h := a.customers.add()
	h.shop, h.wish, h.scheduled, h.alone = shop, w, time.Now(), true
	ctx, cancel := context.WithTimeout(ctx, a.o.Timeout)
	defer cancel()
	h.take(load.Send(ctx, a.order(h)))
	close(h.done)
}
