package redislock

import (
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

// renewal is one of a hold, or a waiter's heartbeat.
type renewal struct {
	lock    *lock
	attempt uint64
	lease   time.Duration
	hold    *hold // nil for a heartbeat
}

// lookAt does what is to be done by the clock, in the goroutine of the timer.
func (l *Locker) lookAt(n *lock) {
	l.mu.Lock()
	if l.closed {
		l.unlock()
		return
	}
	now := l.now()
	n.look = 0
	if h := n.hold; n.state == held && !h.graced && h.Context.Err() != nil { // its parent's: a loss ends the machine
		h.graced = true
		if end := now + l.opts.grace(n.lease); n.ends == 0 || end < n.ends {
			n.ends = end
		}
	}
	next, renew := n.machine.look(l.opts.FixedLease, now)
	switch {
	case next.lost && next.over == 0:
		l.lostLocked(n, "held for longer than Options.MaxHold, or than Options.Grace after its context's end")
	case next.lost:
		l.lostLocked(n, "its lease is over")
	}
	r := renewal{n, n.attempt, n.lease, n.hold}
	l.settleLocked(n, next, "")
	if renew {
		l.work.Add(1)
	}
	l.unlock()
	if renew {
		l.renew(r)
	}
}

// renew sends a renewal, and takes in the answer.
func (l *Locker) renew(r renewal) {
	defer l.work.Done()
	n, sent := r.lock, l.now()
	behalf, c := l.ctx, l.server.heartbeat(n.name, n.keys, r.attempt, r.lease)
	if r.hold != nil {
		behalf, c = r.hold.parent, l.server.renew(n.keys, r.attempt, r.lease)
	}
	reply, err := l.server.do(bound(behalf, l.base.Add(sent+third(r.lease))), c)
	l.mu.Lock()
	defer l.unlock()
	if err == nil {
		l.renewedLocked(r, reply, sent)
		return
	}
	if h := n.hold; h != nil && h.attempt == r.attempt {
		h.failed.Store(&err)
	}
	n.notRenewed(r.attempt, l.now())
	l.scheduleLocked(n)
}

// renewedLocked takes in the answer to a renewal.
func (l *Locker) renewedLocked(r renewal, a reply, sent instant) {
	n, h := r.lock, r.lock.hold
	next := n.renewed(r.attempt, r.hold != nil, a, sent, l.now())
	switch {
	case next.lost && a.kind == replyDropped:
		l.lostLocked(n, "Redis says that it is not held")
	case next.lost:
		l.lostLocked(n, "its lease is over")
	case h != nil && h.attempt == r.attempt && n.state == held && a.kind == replyHeld:
		h.deadline.Store(int64(n.deadline))
		h.failed.Store(nil)
		if h.isLost() { // somebody looked at the clock just before
			l.lostLocked(n, "its lease is over")
			next = n.lose()
			break
		}
		if hook := l.opts.Hooks.Renewed; hook != nil {
			l.events = append(l.events, func() { hook(h.parent, h.event(nil)) })
		}
	}
	l.settleLocked(n, next, Remote)
}
