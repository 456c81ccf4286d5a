package redislock

import "time"

// Release is that of [Lease].
func (h *hold) Release() error {
	last, err := h.leave()
	if hook := h.locker.opts.Hooks.Released; hook != nil && last {
		hook(h.parent, h.event(err))
	}
	raise(err)
	return err
}

// leave ends one entry. The last one passes the lock to the next goroutine of this process, or
// releases it in Redis.
func (h *hold) leave() (last bool, err error) {
	l, n := h.locker, h.lock
	l.mu.Lock()
	if h.isLost() && n.hold == h { // by the clock: the timer has not come to it
		l.settleLocked(n, n.lose(ErrLeaseOver), "")
	}
	h.entries--
	switch {
	case n.hold != h:
		if h.abandoned && h.entries == 0 { // its holder is done
			l.cleanLocked(n, h.attempt, h.lease)
		}
		l.unlock()
		return false, notHeld(h.key)
	case h.entries > 0:
		l.unlock()
		return false, nil
	}
	h.end(wasReleased, (*released)(h))
	n.hold = nil
	n.dismissGoneLocked()
	w := n.firstLocked()
	if w != nil && n.mayPass(w.lease, l.now()) {
		l.settleLocked(n, n.pass(), Local)
		l.unlock()
		return true, nil
	}
	r := request{lock: n, sent: l.now()}
	n.stop()
	if w != nil {
		r = l.beginLocked(n) // the release also is the request of that attempt
	}
	l.calls.Add(1)
	l.settleLocked(n, todo{}, "")
	l.unlock()
	return true, l.sendRelease(h, r)
}

// maxRelease bounds a Release that Redis does not answer, or refuses. The Locker goes on in the background.
const maxRelease = 5 * time.Second

// sendRelease releases a hold in Redis, and processes the answer. The same request queues for the
// next waiter of this process.
func (l *Locker) sendRelease(h *hold, r request) error {
	defer l.calls.Done()
	var next []any
	if w := r.asker; w != nil {
		next = []any{r.attempt, w.lease.Milliseconds(), (r.sent - w.begun).Microseconds()}
	}
	n, end := h.lock, r.sent+min(third(h.lease), maxRelease)
	ctx := bound(h.parent, l.base.Add(end), nil)
	a, err := l.server.do(ctx, releaseScript, n, h.attempt, next...)
	for pause := nextPause(0, h.lease); passing(err) && l.now()+pause <= end; pause = nextPause(pause, h.lease) {
		time.Sleep(pause)
		a, err = l.server.do(ctx, releaseScript, n, h.attempt, next...)
	}
	l.mu.Lock()
	defer l.unlock()
	if err != nil {
		l.cleanLocked(n, h.attempt, h.lease)
		l.settleLocked(n, l.failedLocked(n, r.attempt, err), "")
		return failed("release", h.key, err)
	}
	l.settleLocked(n, n.answered(r.attempt, a, true, r.sent, l.now()), Remote)
	if a.kind == replyDropped {
		return notHeld(h.key)
	}
	return nil
}
