package trial

import (
	"context"
	"fmt"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/load"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/stock"
	"stocklock/internal/strategy/declared"
)

// afterwards has the item restocked, and lets customers go on: a few side by side, and then one after
// another. It ends where something is amiss.
//
// The restock comes when all is sold, every request was answered and nothing is held. A strategy that is
// not mixable promises nothing for a restock between its read and its write: whether that is lost would
// be chance.
//
// Of those who come one after another, each waits for its answer, and nothing else is under way. So the
// units that are there say what each must be answered. One buys all but a few, then each shop sells two
// units. Of two that are left, one is sold, and sold again under its key. Two are more than are left then,
// and one is the last.
func (a *attack) afterwards(ctx context.Context) {
	if a.Scenario.Comparable || a.stuck != nil || !a.atRest(ctx) || !a.restockable() {
		return
	}
	if a.Testbed == nil { // one that was killed may be away yet
		a.awaitShops(ctx)
	}
	shops := len(a.Shops)
	few := int64(2*shops + 2)
	if err := a.restock(ctx, crowdAfterwards*mostUnits+few); err != nil {
		a.problems.add(err)
		return
	}
	if a.keepsUnits() {
		a.customers.wishes.keys = false // a repeat beside its purchase keeps units until its lease ends
	}
	a.crowd(ctx, load.Load{Workers: min(a.o.Workers, 4), Over: func(sent int) bool { return sent >= crowdAfterwards }})
	there, err := audit.Count(ctx, a.Store, a.item)
	if err != nil || there.LostUpdates != 0 {
		return // measure counts once more
	}
	if more := there.Remaining - few; more > 0 {
		a.alone(ctx, 0, wish{quantity: int(more)})
	}
	for shop := range shops {
		a.alone(ctx, shop, wish{quantity: 2})
	}
	one := a.customers.wishes.keyed(len(a.customers.hits))
	for i, w := range []wish{one, one, {quantity: 2}, {quantity: 1}, {quantity: 1}} {
		a.alone(ctx, i%shops, w)
	}
}

// crowdAfterwards is how many requests are sent side by side after a restock.
const crowdAfterwards = 8

// atRest reports whether all is sold as it should be. Before that come the customers who have reason to
// ask again, and those who buy what has returned.
func (a *attack) atRest(ctx context.Context) bool {
	shops := len(a.Shops)
	for shop := 0; len(a.customers.wishes.again) > 0 && ctx.Err() == nil; shop++ {
		a.alone(ctx, shop%shops, a.customers.wishes.repeated())
	}
	there, err := audit.Count(ctx, a.Store, a.item)
	if err == nil && there.Remaining > 0 && a.keepsUnits() {
		// Units of requests that came to nothing may return late, when all others have been told that the
		// item is sold out.
		err = settle(ctx, func() (int64, time.Duration, error) {
			there, err = audit.Count(ctx, a.Store, a.item)
			return there.Orders, 2 * a.o.Lease, err
		})
		if err != nil {
			return false
		}
		for i := range there.Remaining {
			a.alone(ctx, int(i)%shops, wish{quantity: 1})
		}
		there, err = audit.Count(ctx, a.Store, a.item)
	}
	return err == nil && there.Remaining == 0 && there.LostUpdates == 0
}

func (a *attack) restock(ctx context.Context, n int64) error {
	_, err := a.Store.Restock(ctx, restocker(a.item), a.item.ItemID, n)
	if err == nil {
		err = audit.Prepare(ctx, a.Store, a.item.State, a.item.ItemID)
	}
	if err != nil {
		return fmt.Errorf("restock: %w", err)
	}
	a.restocks = append(a.restocks, units{time.Now(), n})
	return nil
}

// restocker has a key with the number of the item: the id of its run can fill the column of a key alone.
func restocker(of audit.Run) stock.Author {
	return stock.Author{Subject: "lab", IdempotencyKey: fmt.Sprint("restock-", of.ItemID), RequestID: of.ID, Shop: "lab"}
}

// keepsUnits reports whether the strategy keeps units for a sale before it is made.
func (a *attack) keepsUnits() bool {
	return a.Of.Lease.Kept == declared.LeaseInMySQL || len(a.Of.State.Keys) > 0
}

// restockable reports whether units that come to the item's row are sold. A strategy that counts units in
// Redis never finds them, nor does one that goes by a copy which nobody renews. One that is not mixable may undo a restock, if somebody has read the stock before
// it: without an answer, a sale may still be under way.
func (a *attack) restockable() bool {
	of := a.Of
	if of.Mixable {
		return true
	}
	for _, h := range a.customers.hits {
		if h.Outcome == load.Unknown && h.Status == 0 && !broken(h.Answer) {
			return false
		}
	}
	return len(of.State.Keys) == 0 && of.Properties.Meets(declared.FreshRead)
}

// alone sends one request and waits for its answer. It asks again, twice at most, where that is busy and nothing has kept it
// out: a client may have been too slow for its own limit.
func (a *attack) alone(ctx context.Context, shop int, w wish) {
	h := a.once(ctx, shop, w)
	for try := 0; try < 2 && h.Outcome == load.Busy && a.sees() && a.Of.Passes(sale.Waiting); try++ {
		read := a.feed.await(ctx, func() bool { return a.feed.readAt(shop).After(h.answeredAt()) })
		if _, refused := a.feed.find(func(e labmode.Event) bool { return e.Request == h.id && e.Point == sale.Waiting }); refused || !read {
			return
		}
		h.passed = true
		h = a.once(ctx, shop, w)
	}
}

func (a *attack) once(ctx context.Context, shop int, w wish) *Customer {
	h := a.customers.add()
	h.shop, h.wish, h.scheduled, h.alone = shop, w, time.Now(), true
	if !a.play.IsZero() { // as of the crowd: no stall outlasts it
		h.lease = a.longLease()
	}
	ctx, cancel := context.WithTimeout(ctx, a.o.Timeout)
	defer cancel()
	h.take(load.Send(ctx, a.order(h)))
	close(h.done)
	return h
}
