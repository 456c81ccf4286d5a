package stage

import (
	"context"
	"fmt"
	"slices"
	"time"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/seen"
	"stocklock/internal/shop/labmode"
)

// How long to wait for what, beyond which a run has failed.
const (
	settleLimit = 8 * time.Second
	lookAfter   = 3 * time.Millisecond   // silence after which a row is looked at
	lockAfter   = 20 * time.Millisecond  // and the lock: a shop may be at work
	unforeseen  = 100 * time.Millisecond // and MySQL, for a wait that no statement explains
	dropAfter   = 2 * time.Second        // or a lease if that is longer: the shop has dropped what it was to write
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

// silence is what is known of a customer from whom nothing is heard.
type silence struct {
	long     bool              // for more than a lease
	refused  bool              // it has passed the point waiting, and has sent nothing since
	answered bool              // the customer has its answer, and can have more to write
	dropped  bool              // for so long that its shop has dropped that
	server   string            // of its request under way, empty for none
	cut      bool              // its shop has lost Redis
	waits    bool              // MySQL says that its request waits
	row      schedule.Customer // whose transaction it can wait for, 0 for none that is known
	locking  bool              // it can wait for the lock
	lock     string            // "held" or "held by A", empty for a lock that is free
	theirs   bool              // and another customer has it
}

// why says in which state the customer is, and what keeps it there.
func (s silence) why() (now state, blocked string) {
	switch {
	case s.answered && s.server == "":
		if s.dropped {
			return ended, ""
		}
	case s.cut && s.server != "" && s.server != labmode.MySQLServer:
		return cutOff, schedule.ServerName(s.server) + " is silent"
	case s.waits && s.row == 0:
		return onRow, "MySQL makes it wait"
	case s.waits:
		return onRow, fmt.Sprintf("the row is held by %s's transaction", s.row)
	case s.locking && s.lock != "" && (s.theirs || s.long || s.refused):
		return onLock, "the lock is " + s.lock
	case s.locking && (s.long || s.refused):
		return onLock, ""
	}
	return moving, ""
}

// probe finds out why a customer is silent.
func (r *run) probe(ctx context.Context, b *buyer) error {
	s, err := r.listen(ctx, b)
	if err != nil {
		return err
	}
	now, blocked := s.why()
	if b.state = now; now == ended {
		b.ended()
	}
	if now == onLock && s.long {
		r.waited(time.Since(b.heard))
	}
	if entry := r.lastOf(b); blocked != "" && entry >= 0 {
		r.entries[entry].Blocked = blocked
	}
	return nil
}

// withoutPolls takes back that a customer waits who was only slow: it asks again for a lock that nobody has
// changed, as one does that polls.
func (r *run) withoutPolls() {
	for _, b := range r.buyers {
		if entry := r.lastOf(b); b.state == atStep && b.held.Server != labmode.MySQLServer && entry >= 0 && r.pointless(b) {
			r.entries[entry].Blocked = ""
		}
	}
}

// lastOf is the entry of a customer's request under way, or else its last one, -1 for none.
func (r *run) lastOf(b *buyer) int {
	i := b.flying
	if i < 0 {
		for i = len(r.entries) - 1; i >= 0 && r.entries[i].Choice.Customer != b.customer; i-- {
		}
	}
	return i
}

// listen looks at what a silent customer can wait for.
func (r *run) listen(ctx context.Context, b *buyer) (silence, error) {
	silent := time.Since(b.heard)
	s := silence{long: silent > r.slot.lease, dropped: silent > max(r.slot.lease, dropAfter), answered: b.answer != "", cut: b.cut, refused: b.refused}
	if b.flying >= 0 {
		s.server = r.entries[b.flying].Server
	}
	if s.server == labmode.MySQLServer && b.held.Conn != 0 {
		if s.row = r.mayWaitFor(b); s.row == 0 && silent < unforeseen {
			return s, nil
		}
		var err error
		s.waits, err = seen.ConnWaits(ctx, r.slot.database.store.Pool(), b.held.Conn)
		return s, err
	}
	if s.locking = silent > lockAfter && (b.flying < 0 && !s.answered || r.acquires(b)); !s.locking {
		return s, nil
	}
	look, err := r.lookAtLock(ctx)
	if err == nil && look.Locked() {
		owner := r.ownerOf(look)
		// A lock whose requests are not held does not say at once whose it is. Who was not kept out is slow.
		s.theirs = b.keptOut && owner != b.customer && (owner != 0 || !r.of.AtPoints())
		if s.lock = "held"; owner != 0 {
			s.lock = fmt.Sprintf("held by %s", owner)
		}
	}
	return s, err
}

// recheck puts everyone on the way again whose reason to wait is gone.
func (r *run) recheck(ctx context.Context) error {
	again := false
	for _, b := range r.buyers {
		switch {
		case b.state == onRow: // what it waits for can have ended, by a deadlock, too
			b.state, b.heard, again = moving, time.Now(), true
		case b.state == onLock && (!r.lock.Locked() || r.owner == b.customer || r.owner == 0 && r.of.AtPoints()):
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
	if time.Since(begun) > r.slot.lease/5 {
		r.waited(time.Since(begun))
		r.segment = time.Now() // a waiter that found out by its heartbeat takes that long on any machine
	}
	return r.look(ctx, 0, "")
}
