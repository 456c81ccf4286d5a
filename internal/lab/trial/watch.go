package trial

import (
	"context"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/explain"
)

// Watch gets the events of a cell while it runs. Each is one of:
//
//   - [Attempt], first
//   - [explain.Request] when a request is made, and again with its answer
//   - [labmode.Event], a point that a sale passed
//   - [explain.Change], what Redis announced of the lock
//   - [explain.Intervention] when it begins, and again when it is over
//   - [Look], what MySQL has, five times a second, and once more at rest
//   - [explain.Evidence], last: all of it once more, with the orders
//
// It is called from several goroutines, and must not block.
type Watch func(seen any)

// Attempt says that the attack on a cell begins.
type Attempt struct {
	Run    string
	ItemID uint64
	Began  time.Time
}

// Look is what MySQL has at a moment of a cell, counted by SQL.
type Look struct {
	At time.Time
	audit.Counts
}

const lookEvery = 200 * time.Millisecond

func (w Watch) see(seen any) {
	if w != nil {
		w(seen)
	}
}

func (a *attack) see(seen any) { a.o.Watch.see(seen) }

// startWatch shows to the watcher what the attack itself does not know: what MySQL has. It ends with
// ctx.
func (a *attack) startWatch(ctx context.Context) {
	if a.o.Watch == nil {
		return
	}
	a.see(Attempt{Run: a.item.ID, ItemID: a.item.ItemID, Began: a.begun})
	a.background.Go(func() { a.look(ctx) })
}

// look asks MySQL until ctx ends. A count that fails is made the next time.
func (a *attack) look(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		a.looks.Add(1)
		if counts, err := audit.Count(ctx, a.Store, a.item); err == nil {
			a.see(Look{At: time.Now(), Counts: counts})
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (h *Customer) asked() explain.Request {
	return explain.Request{ID: h.id, Shop: explain.ShopName(h.shop), Sent: time.Now(), Nested: h.nested, Fault: h.first}
}
