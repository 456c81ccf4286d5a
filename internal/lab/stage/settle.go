package stage

import (
	"context"
	"fmt"
	"slices"
	"time"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/shop/labmode"
)

// How long to wait for what, beyond which a run has failed.
const (
	settleLimit = 8 * time.Second
	lookAfter   = 3 * time.Millisecond  // silence after which a row is looked at
	lockAfter   = 20 * time.Millisecond // and the lock: a shop may be at work
)

// settle waits until nobody is on the way: each customer is held at a step, has ended, or is seen
// to wait.
func (r *run) settle(ctx context.Context) error {
	limit := time.Now().Add(settleLimit)
	for {
		select { // first what is there
		case m := <-r.messages:
			r.handle(m)
			continue
		default:
		}
		if !slices.ContainsFunc(r.buyers, func(b *buyer) bool { return b.state == moving }) {
			return nil
		}
		select {
		case m := <-r.messages:
			r.handle(m)
		case <-time.After(lookAfter):
			for _, b := range r.buyers {
				if b.state == moving {
					if err := r.probe(ctx, b); err != nil {
						return err
					}
				}
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if time.Now().After(limit) {
			return fmt.Errorf("no rest within %s: %s", settleLimit, r.whoWaits())
		}
	}
}

// probe finds out why a customer is silent.
func (r *run) probe(ctx context.Context, b *buyer) error {
	silent := time.Since(b.heard)
	switch {
	case b.answer != "" && b.flying < 0: // it may write what it has answered
		if silent > r.stage.lease {
			b.state, b.row = ended, schedule.NoRow
		}
	case b.flying >= 0 && b.cut && r.entries[b.flying].Server != labmode.MySQLServer:
		b.state = cutOff
		r.entries[b.flying].Blocked = schedule.ServerName(r.entries[b.flying].Server) + " is silent"
	case b.flying >= 0 && r.entries[b.flying].Request().RowLock() != schedule.NoRow:
		holder := r.rowHolder(b, r.entries[b.flying].Request().RowLock())
		if holder == nil {
			return nil
		}
		held, err := rowIsHeld(ctx, r.stage.store.Pool(), r.item)
		if err == nil && held && b.state == moving {
			b.state = onRow
			r.entries[b.flying].Blocked = fmt.Sprintf("the row is held by %s's transaction", holder.customer)
		}
		return err
	case (b.flying < 0 || r.acquires(b)) && silent > lockAfter:
		look, err := r.lookAtLock(ctx)
		if err != nil {
			return err
		}
		// A lock whose requests are not held does not say at once whose it is.
		if owner := r.ownerOf(look); look.present() && owner != b.customer && (owner != 0 || !r.of.AtPoints()) || silent > r.stage.lease {
			b.state = onLock
			if look.present() && owner != 0 {
				r.blockLast(b, fmt.Sprintf("the lock is held by %s", owner))
			} else if look.present() {
				r.blockLast(b, "the lock is held")
			}
		}
	}
	return nil
}

func (r *run) blockLast(b *buyer, by string) {
	for i := range slices.Backward(r.entries) {
		if r.entries[i].Choice.Customer == b.customer {
			r.entries[i].Blocked = by
			return
		}
	}
}

// recheck puts everyone on the way again whose reason to wait is gone.
func (r *run) recheck(ctx context.Context) error {
	again := false
	for _, b := range r.buyers {
		switch {
		case b.state == onRow && r.rowHolder(b, r.entries[b.flying].Request().RowLock()) == nil:
			b.state, b.heard, again = moving, time.Now(), true
		case b.state == onLock && (!r.lock.present() || r.owner == b.customer || r.owner == 0 && r.of.AtPoints()):
			b.state, b.heard, again = moving, time.Now(), true
		}
	}
	if !again {
		return nil
	}
	begun := time.Now()
	if err := r.settle(ctx); err != nil {
		return err
	}
	if time.Since(begun) > r.stage.lease/5 {
		r.segment = time.Now() // a waiter that found out by its heartbeat takes that long on any machine
	}
	return r.look(ctx, 0, "")
}
