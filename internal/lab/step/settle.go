package step

import (
	"context"
	"fmt"
	"slices"
	"time"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/seen"
	"stocklock/internal/lab/words"
	"stocklock/internal/shop/labmode"
)

// How long to wait for what.
const (
	lookAfter  = 3 * time.Millisecond   // silence after which the servers are asked who waits
	unforeseen = 100 * time.Millisecond // and MySQL, for a wait that no statement explains
)

// settle waits until nobody is on the way: each customer is held at a step, has ended, or is seen
// to wait.
func (r *run) settle(ctx context.Context) error {
	limit := time.Now().Add(r.restLimit)
	for {
		if err := r.drain(ctx); err != nil {
			return err
		}
		if !slices.ContainsFunc(r.buyers, (*buyer).moves) {
			return nil
		}
		select {
		case m := <-r.messages:
			if err := r.handle(ctx, m); err != nil {
				return err
			}
		case <-time.After(lookAfter):
			for _, b := range r.buyers {
				if !b.moves() {
					continue
				}
				if err := r.probe(ctx, b); err != nil {
					return err
				}
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if time.Now().After(limit) {
			return fmt.Errorf("%w: no rest within %s: %s", ErrSilent, r.restLimit, r.whoWaits())
		}
	}
}

func (r *run) drain(ctx context.Context) error {
	for {
		select {
		case m := <-r.messages:
			if err := r.handle(ctx, m); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// silence is what is known of a customer from whom nothing is heard.
type silence struct {
	since    time.Duration
	quiet    time.Duration     // what this process has seen of that
	long     bool              // for more than a lease
	refused  bool              // it has been refused, and has sent nothing since; or it waits for a message
	answered bool              // the customer has its answer, and can have more to write
	dropped  bool              // for so long that nothing more is to come
	server   string            // of its request under way, empty for none
	cut      bool              // its process has lost Redis
	waits    bool              // the server says that its request waits
	row      schedule.Customer // whose transaction it can wait for, 0 for none that is known
	locking  bool              // it can wait for the lock
	lock     words.Text        // that it is held, and by whom; zero for a lock that is free
	theirs   bool              // and another customer has it
}

// why says in which state the customer is, and what keeps it there.
func (s silence) why() (now state, blocked words.Text) {
	switch {
	case s.answered && s.server == "":
		if s.dropped {
			return ended, blocked
		}
	case s.cut && s.server != "" && s.server != labmode.MySQLServer:
		return cutOff, words.Of("blocked.silent", "server", schedule.ServerName(s.server))
	case s.waits && s.server == labmode.RedisServer:
		return onRedis, words.Of("blocked.redis")
	case s.waits && s.row == 0:
		return onRow, words.Of("blocked.mysql")
	case s.waits:
		return onRow, words.Of("blocked.row", "by", s.row.String())
	case s.locking && !s.lock.IsZero() && (s.theirs || s.long || s.refused):
		return onLock, s.lock
	case s.locking && (s.long || s.refused):
		return onLock, blocked
	}
	return moving, blocked
}

// probe finds out why a customer is silent.
func (r *run) probe(ctx context.Context, b *buyer) (err error) {
	s := silence{since: time.Since(b.heard), quiet: b.quiet.Until(b.heard, time.Now(), lookAfter), answered: b.answer != ""}
	if b.flying != nil {
		s.server = b.flying.Server
	}
	if s.server == labmode.MySQLServer && b.flying.conn != 0 {
		if s.row = r.mayWaitFor(b); s.row != 0 || s.since > unforeseen {
			s.waits, err = seen.ConnWaits(ctx, r.db(), b.flying.conn)
		}
	} else {
		err = r.listen(ctx, b, &s)
	}
	if err != nil {
		return err
	}
	now, blocked := s.why()
	b.state = now
	if now == onLock && s.long {
		r.waited(time.Since(b.heard))
	}
	if entry := r.lastOf(b); !blocked.IsZero() && entry >= 0 {
		r.entries[entry].Blocked = blocked
	}
	return nil
}

// lastOf is the entry of a customer's request under way, or else its last one, -1 for none.
func (r *run) lastOf(b *buyer) int {
	if b.flying != nil {
		return b.flying.entry
	}
	i := len(r.entries) - 1
	for ; i >= 0 && r.entries[i].Choice.Customer != b.customer; i-- {
	}
	return i
}

// mayWaitFor is another customer for whom the statement of b may have to wait, 0 for none.
func (r *run) mayWaitFor(b *buyer) schedule.Customer {
	i := r.schema.MayWaitFor(int(b.customer-'A'), r.parties())
	if i < 0 {
		return 0
	}
	return r.buyers[i].customer
}

// recheck puts everyone on the way again whose reason to wait may be gone.
func (r *run) recheck(ctx context.Context) error {
	again := false
	for _, b := range r.buyers {
		// What one waits for in a server can have ended, by a deadlock, too.
		if b.state == onRow || b.state == onRedis || b.state == onLock && r.wakes(b) {
			b.state, b.heard, again = moving, time.Now(), true
		}
	}
	begun := time.Now()
	if err := r.settle(ctx); err != nil || !again {
		return err
	}
	if time.Since(begun) > r.lease/5 {
		r.waited(time.Since(begun))
		r.beginSegment() // a waiter that found out by its heartbeat takes that long on any machine
	}
	return r.look(ctx, 0, "")
}
