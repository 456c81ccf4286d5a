package redislock

import (
	"cmp"
	"context"
	"time"
)

// A lock that is held or waited for has a timer. It goes off when the clock alone changes
// something, or a renewal is due.

// maxRenewals is how many renewals are under way at once. A burst, such as the one after a pause of
// the process, then leaves connections and processors for other requests. A renewal that is overdue
// waits for a twenty-fourth of its lease at most, even if Redis answers none.
const maxRenewals = 4

// addLocked adds a lock, whose timer does not go off until it is set.
func (l *Locker) addLocked(name string) *lock {
	n := newLock(name)
	n.timer = time.AfterFunc(never, func() { l.lookAt(n) })
	n.timer.Stop()
	l.locks[name] = n
	return n
}

// scheduleLocked sets a lock's timer. One that goes off too soon stays as it is: it looks again then.
func (l *Locker) scheduleLocked(n *lock) {
	if look := n.nextLook(); look != 0 && (n.look == 0 || look < n.look) {
		n.look = look
		n.timer.Reset(look - l.now())
	}
}

// lookAt does what the clock makes due, in the goroutine of the timer.
func (l *Locker) lookAt(n *lock) {
	l.mu.Lock()
	defer l.unlock()
	n.look = 0
	if h := n.hold; h != nil && h.Context.Err() != nil { // its parent's: a loss ends the machine
		n.endBy(l.now() + cmp.Or(l.opts.Grace, n.lease))
	}
	next, due := n.machine.look(l.now())
	if due && !l.overdue[n] && l.renewing >= maxRenewals {
		l.overdue[n] = true
		n.notRenewed(n.attempt, l.now())
	} else if due {
		delete(l.overdue, n)
		l.renewing++
		r := renewal{n, n.hold, n.attempt, n.lease}
		l.work.Go(func() { l.renewAll(r) })
	}
	l.settleLocked(n, next, "")
}

// renewAll sends a renewal, and then those that are overdue.
func (l *Locker) renewAll(r renewal) {
	for ; r.lock != nil; r = l.nextOverdue() {
		behalf := l.ctx
		if r.hold != nil {
			behalf = r.hold.parent
		}
		l.renew(bound(behalf, l.base.Add(l.now()+third(r.lease)), nil), r)
	}
}

// nextOverdue returns the next renewal for a goroutine that has sent one. If there is none, or too
// many goroutines send some, it returns none, and the caller must end.
func (l *Locker) nextOverdue() renewal {
	l.mu.Lock()
	defer l.unlock()
	if l.renewing <= maxRenewals {
		for n := range l.overdue {
			if delete(l.overdue, n); n.state == waiting || n.state == held {
				n.repeat(l.now())
				return renewal{n, n.hold, n.attempt, n.lease}
			}
		}
	}
	l.renewing--
	return renewal{}
}

// renewal is the renewal of a hold, or a waiter's heartbeat.
type renewal struct {
	lock    *lock
	hold    *hold // nil for a heartbeat
	attempt uint64
	lease   time.Duration
}

// renew sends a renewal, and processes the answer.
func (l *Locker) renew(ctx context.Context, r renewal) {
	n, sent, script := r.lock, l.now(), heartbeatScript
	if r.hold != nil {
		script = renewScript
	}
	a, err := l.server.do(ctx, script, n, r.attempt, r.lease.Milliseconds())
	l.mu.Lock()
	defer l.unlock()
	h := n.hold
	mine := h != nil && h.attempt == r.attempt
	if err != nil {
		if mine {
			h.failed.Store(&err)
		}
		n.notRenewed(r.attempt, l.now())
		l.scheduleLocked(n)
		return
	}
	next := n.renewed(r.attempt, r.hold != nil, a, sent, l.now())
	if mine && n.state == held && a.kind == replyHeld {
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
