package redislock

import (
	"time"
)

// Release ends one entry, and with the last one releases the lock: to the next goroutine of this
// process, or to Redis.
func (h *hold) Release() error {
	l, n := h.locker, h.lock
	l.mu.Lock()
	if h.isLost() {
		if n.hold == h { // by the clock: the timer has not come to it
			l.settleLocked(n, n.lose(leaseOver), "")
		}
		l.unlock()
		return notHeld("release", h.key)
	}
	if h.entries--; h.entries > 0 {
		l.unlock()
		return nil
	}
	h.end(wasReleased, (*released)(h))
	n.hold = nil
	n.dismissGoneLocked()
	var err error
	if w := n.firstLocked(); w != nil && !l.opts.FixedLease && n.mayPass(w.lease, l.deafLocked(), l.now()) {
		l.settleLocked(n, n.pass(), Local)
		l.unlock()
	} else {
		r := l.endLocked(h)
		l.unlock()
		err = l.sendRelease(r)
	}
	if hook := l.opts.Hooks.Released; hook != nil {
		hook(h.parent, h.event(err))
	}
	raise(err)
	return err
}

// handover releases a hold in Redis. The same request queues for the next waiter of this process.
type handover struct {
	hold   *hold
	sent   instant
	next   uint64        // the attempt of the next waiter; zero if there is none
	lease  time.Duration // that it wants
	waited time.Duration // by it, so far
	alone  bool          // nobody else is known to want the lock
}

// endLocked ends a hold, and begins the next attempt if somebody here waits. The caller unlocks mu,
// and sends it.
func (l *Locker) endLocked(h *hold) handover {
	n := h.lock
	r := handover{hold: h, sent: l.now(), lease: h.lease}
	if w := n.firstLocked(); w != nil {
		l.attempts++
		r.next, r.lease, r.waited = l.attempts, w.lease, r.sent-w.begun
	}
	r.alone = r.next == 0 && n.others == 0
	n.release(r.next, r.lease, r.sent)
	l.calls.Add(1)
	l.settleLocked(n, todo{}, "")
	return r
}

// sendRelease sends it, and takes in the answer.
func (l *Locker) sendRelease(r handover) error {
	defer l.calls.Done()
	h, n := r.hold, r.hold.lock
	end := r.sent + third(r.lease)
	ctx := bound(h.parent, l.base.Add(end))
	short := func() call { return l.server.releaseUnwanted(n.keys, h.attempt) }
	full := func() call { return l.server.release(n.name, n.keys, h.attempt, r.next, r.lease, r.waited) }
	a, err := l.ask(ctx, n, r.alone, short, full)
	for passing(err) && l.now()+r.lease/24 <= end && l.pause(r.lease/24) {
		a, err = l.server.do(ctx, full())
	}

	l.mu.Lock()
	defer l.unlock()
	if err != nil {
		l.cleanLocked(n, h.attempt)
		l.settleLocked(n, l.failedLocked(n, r.next, definite(err)), "")
		return failed("release", h.key, err)
	}
	l.settleLocked(n, n.answered(r.next, a, true, r.sent, l.now()), Remote)
	if a.kind == replyNotHeld {
		return notHeld("release", h.key)
	}
	return nil
}

// pause waits, but not past the Locker's end. It says whether it waited.
func (l *Locker) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-l.ctx.Done():
		return false
	}
}
