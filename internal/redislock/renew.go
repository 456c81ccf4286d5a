package redislock

import (
	"context"
	"time"
)

// A lock that is held or waited for has a timer, which goes off when the clock alone changes
// something, or a renewal is due.

// scheduleLocked sets a lock's timer.
func (l *Locker) scheduleLocked(n *lock) {
	look := n.nextLook(l.opts.FixedLease)
	if look == n.look {
		return
	}
	n.look = look
	switch {
	case look == 0:
		n.timer.Stop()
	case n.timer == nil:
		n.timer = time.AfterFunc(look-l.now(), func() { l.lookAt(n) })
	default:
		n.timer.Reset(look - l.now())
	}
}

// lookAt does what is to be done by the clock, in the goroutine of the timer.
func (l *Locker) lookAt(n *lock) {
	l.mu.Lock()
	defer l.unlock()
	if l.closed {
		return
	}
	n.look = 0
	if h := n.hold; h != nil && h.Context.Err() != nil { // its parent's: a loss ends the machine
		n.endBy(l.now() + l.opts.grace(n.lease))
	}
	next, due := n.machine.look(l.opts.FixedLease, l.now())
	r := renewal{n, n.hold, n.attempt, n.lease}
	l.settleLocked(n, next, "")
	if due {
		l.work.Go(func() { _ = l.renew(bound(r.behalf(), l.base.Add(l.now()+third(r.lease))), r) })
	}
}

// renewal is one of a hold, or a waiter's heartbeat.
type renewal struct {
	lock    *lock
	hold    *hold // nil for a heartbeat
	attempt uint64
	lease   time.Duration
}

// behalf is the context on whose behalf it is sent.
func (r renewal) behalf() context.Context {
	if r.hold == nil {
		return context.Background()
	}
	return r.hold.parent
}

// renew sends a renewal, and takes in the answer.
func (l *Locker) renew(ctx context.Context, r renewal) error {
	n, sent := r.lock, l.now()
	c := l.server.heartbeat(n.name, n.keys, r.attempt, r.lease)
	if r.hold != nil {
		c = l.server.renew(n.keys, r.attempt, r.lease)
	}
	a, err := l.server.do(ctx, c)
	l.mu.Lock()
	defer l.unlock()
	if err == nil {
		l.renewedLocked(r, a, sent)
		return nil
	}
	if h := n.hold; h != nil && h.attempt == r.attempt {
		h.failed.Store(&err)
	}
	n.notRenewed(r.attempt, l.now())
	l.scheduleLocked(n)
	return err
}

// renewedLocked takes in the answer to a renewal.
func (l *Locker) renewedLocked(r renewal, a reply, sent instant) {
	n, h := r.lock, r.lock.hold
	next := n.renewed(r.attempt, r.hold != nil, a, sent, l.now())
	if h != nil && h.attempt == r.attempt && n.state == held && a.kind == replyHeld {
		h.deadline.Store(int64(n.deadline))
		h.failed.Store(nil)
		if h.isLost() { // somebody looked at the clock just before
			next = n.lose(leaseOver)
		} else if hook := l.opts.Hooks.Renewed; hook != nil {
			l.events = append(l.events, func() { hook(h.parent, h.event(nil)) })
		}
	}
	l.settleLocked(n, next, Remote)
}

// Extend renews a hold on behalf of a caller.
func (h *hold) Extend(ctx context.Context) error {
	if !h.Valid() {
		return notHeld("extend", h.key)
	}
	if err := h.locker.renew(ctx, renewal{h.lock, h, h.attempt, h.lease}); err != nil {
		raise(err)
		return failed("extend", h.key, err)
	}
	if !h.Valid() {
		return notHeld("extend", h.key)
	}
	return nil
}
