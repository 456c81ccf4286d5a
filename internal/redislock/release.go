package redislock

import (
	"context"
	"fmt"
	"time"
)

// entry is one time that a holder entered.
type entry struct {
	lease Lease
	hold  *hold
	key   string // as the caller spelled it
	inner *inner // of an entry with a context of its own
}

func (e *entry) Key() string         { return e.key }
func (e *entry) Token() int64        { return e.hold.fence }
func (e *entry) Deadline() time.Time { return e.hold.until() }
func (e *entry) Valid() bool         { return e.hold.valid() }

func (e *entry) Release() error {
	if e.inner != nil {
		e.inner.cancel((*released)(e.hold))
	}
	return e.hold.leave()
}

func (e *entry) Extend(ctx context.Context) error {
	h := e.hold
	l, n := h.locker, h.lock
	if !h.valid() {
		return fmt.Errorf("extend %q: %w", e.key, ErrNotHeld)
	}
	sent := l.now()
	r, err := l.server.do(ctx, l.server.renew(n.keys, h.attempt, h.lease))
	if err != nil {
		raise(err)
		return failed("extend", e.key, err)
	}
	l.mu.Lock()
	l.renewedLocked(renewal{n, h.attempt, h.lease, h}, r, sent)
	l.unlock()
	if !h.valid() {
		return fmt.Errorf("extend %q: %w", e.key, ErrNotHeld)
	}
	return nil
}

// leave ends one entry, and with the last one releases the lock: to the next goroutine of this
// process, or to Redis.
func (h *hold) leave() error {
	l, n := h.locker, h.lock
	l.mu.Lock()
	now := l.now()
	switch {
	case h.isLost():
		if n.hold == h { // by the clock: the loop has not come to it
			l.lostLocked(n, "its lease is over")
			l.settleLocked(n, n.lose(), "")
		}
		l.unlock()
		return fmt.Errorf("release %q: %w", h.first.key, ErrNotHeld)
	case h.ended.Load() == wasReleased: // it cannot be: each lease is released once
		l.unlock()
		return fmt.Errorf("release %q: %w", h.first.key, ErrNotHeld)
	}
	if h.entries--; h.entries > 0 {
		l.unlock()
		return nil
	}
	h.end(wasReleased, (*released)(h))
	n.hold = nil
	var err error
	n.dismissGoneLocked()
	if w := n.firstLocked(); w != nil && !l.opts.FixedLease && n.mayPass(w.lease, l.deafLocked(), now) {
		l.settleLocked(n, n.pass(), Local)
		l.unlock()
	} else {
		err = l.releaseToRedis(h, now) // unlocks
	}
	if hook := l.opts.Hooks.Released; hook != nil {
		hook(h.parent, h.event(err))
	}
	raise(err)
	return err
}

// releaseToRedis releases the lock and, in the same request, queues for the next waiter of this
// process. It is called with Locker.mu, which it unlocks.
func (l *Locker) releaseToRedis(h *hold, now instant) error {
	n := h.lock
	lease, next, waited := n.lease, uint64(0), time.Duration(0)
	if w := n.firstLocked(); w != nil && l.hearsLocked() {
		l.attempts++
		next, lease, waited = l.attempts, w.lease, now-w.begun
	}
	free := next == 0 && n.others == 0 && n.assumeContended == 0
	n.release(next, lease, now)
	l.calls.Add(1)
	defer l.calls.Done()
	l.settleLocked(n, todo{}, "") // a waiter that cannot be queued with the release asks for itself
	l.unlock()

	ctx := bound(h.parent, l.base.Add(now+third(lease)))
	a := answer{reply: reply{kind: replyDropped}}
	if free {
		a.reply, a.err = l.server.do(ctx, l.server.releaseUnwanted(n.keys, h.attempt))
	}
	wanted := free && a.err == nil && a.kind == replyDropped
	for a.err == nil && a.kind == replyDropped || passing(a.err) {
		if passing(a.err) && (l.now()+lease/24 > now+third(lease) || !l.pause(lease/24)) {
			break
		}
		a.reply, a.err = l.server.do(ctx, l.server.release(n.name, n.keys, h.attempt, next, lease, waited))
	}

	l.mu.Lock()
	defer l.unlock()
	n.learnLocked(wanted, a)
	if a.err != nil {
		l.cleanLocked(n, h.attempt)
		if next != 0 {
			l.settleLocked(n, n.failed(next, refused(a.err) || unsent(a.err)), "")
		}
		return failed("release", h.first.key, a.err)
	}
	if next != 0 {
		todo, nothing := n.answered(next, a.reply, true, now, l.now())
		if nothing { // the lock was not ours, or the next attempt is over: it was not queued
			n.stop()
		}
		l.settleLocked(n, todo, Remote)
	}
	if a.kind == replyNotHeld {
		return fmt.Errorf("release %q: %w", h.first.key, ErrNotHeld)
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
