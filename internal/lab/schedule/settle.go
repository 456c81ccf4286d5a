package schedule

import (
	"context"
	"fmt"
	"slices"
	"time"

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
		case m := <-r.inbox:
			r.handle(m)
			continue
		default:
		}
		if !slices.ContainsFunc(r.people, func(p *person) bool { return p.state == moving }) {
			return nil
		}
		select {
		case m := <-r.inbox:
			r.handle(m)
		case <-time.After(lookAfter):
			for _, p := range r.people {
				if p.state == moving {
					if err := r.probe(ctx, p); err != nil {
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
func (r *run) probe(ctx context.Context, p *person) error {
	silent := time.Since(p.heard)
	switch {
	case p.answer != "" && p.flying < 0: // it may write what it has answered
		if silent > r.stage.lease {
			p.state, p.row = ended, noRow
		}
	case p.flying >= 0 && p.cut && r.entries[p.flying].Server != labmode.MySQLServer:
		p.state = inPeace
		r.entries[p.flying].Blocked = serverName(r.entries[p.flying].Server) + " is silent"
	case p.flying >= 0 && r.entries[p.flying].Request.rowLock() != noRow:
		holder := r.rowHolder(p, r.entries[p.flying].Request.rowLock())
		if holder == nil {
			return nil
		}
		held, err := rowIsHeld(ctx, r.stage.store.Pool(), r.item)
		if err == nil && held && p.state == moving {
			p.state = onRow
			r.entries[p.flying].Blocked = fmt.Sprintf("the row is held by %s's transaction", holder.customer)
		}
		return err
	case (p.flying < 0 || r.acquires(p)) && silent > lockAfter:
		look, err := r.lookAtLock(ctx)
		if err != nil {
			return err
		}
		// A lock whose requests are not held does not say at once whose it is.
		if owner := r.ownerOf(look); look.present() && owner != p.customer && (owner != 0 || !r.of.AtPoints()) || silent > r.stage.lease {
			p.state = onLock
			if look.present() && owner != 0 {
				r.blockLast(p, fmt.Sprintf("the lock is held by %s", owner))
			} else if look.present() {
				r.blockLast(p, "the lock is held")
			}
		}
	}
	return nil
}

func (r *run) blockLast(p *person, by string) {
	for i := range slices.Backward(r.entries) {
		if r.entries[i].customer == p.customer {
			r.entries[i].Blocked = by
			return
		}
	}
}

// recheck puts everyone on the way again whose reason to wait is gone.
func (r *run) recheck(ctx context.Context) error {
	again := false
	for _, p := range r.people {
		switch {
		case p.state == onRow && r.rowHolder(p, r.entries[p.flying].Request.rowLock()) == nil:
			p.state, p.heard, again = moving, time.Now(), true
		case p.state == onLock && (!r.lock.present() || r.owner == p.customer || r.owner == 0 && r.of.AtPoints()):
			p.state, p.heard, again = moving, time.Now(), true
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
