package redislock

import (
	"context"
	"errors"
	"time"
)

// request begins an attempt. The first waiter asks, on behalf of all waiters of this process.
type request struct {
	lock    *lock
	asker   *waiter
	attempt uint64
	sent    instant
	end     instant         // when it has no answer
	gone    <-chan struct{} // closed when the asker gave up; then nobody waits for a connection
}

// enter is Acquire and TryAcquire.
func (l *Locker) enter(ctx context.Context, key string, o AcquireOptions, try bool) (context.Context, *Lease, error) {
	o = o.withDefaults(l.opts)
	name := l.opts.Prefix + tagged(key)
	outer, _ := ctx.Value((*holdsOf)(l)).(*hold) // the innermost, or nil
	if h := outer.of(name); h != nil {
		if held, lease, err := h.reenter(ctx, key); held != nil || err != nil {
			return held, lease, err
		}
	}
	if ctx.Err() != nil {
		return nil, nil, notAcquired(key, context.Cause(ctx))
	}
	w := &waiter{ctx: ctx, key: key, lease: o.Lease, maxHold: o.MaxHold, outer: outer, begun: l.now(), answer: make(chan result, 1), try: try}
	w.until = w.begun + o.Wait
	if l.opts.Hooks.Waiting != nil && !try {
		w.taken = make(chan struct{}, 1)
	}
	l.mu.Lock()
	if l.closed {
		l.unlock()
		return nil, nil, ErrClosed
	}
	l.calls.Add(1)
	defer l.calls.Done()
	n := l.locks[name]
	if n == nil {
		n = newLock(name)
		l.locks[name] = n
	}
	w.place = n.waiters.PushBack(w)
	switch {
	case n.state != idle && try:
		n.dismissLocked(w, result{err: notAcquired(key)})
	case n.state != idle:
		// Goroutines that pass the lock on among themselves must hear when another
		// process begins to wait for it.
		if err := l.subscribeLocked(); err != nil {
			n.dismissLocked(w, result{err: failed("wait for", key, err)})
		}
		n.refuseNewLocked()
	case ctx.Done() == nil && o.Wait == never:
		r := l.beginLocked(n)
		l.unlock()
		l.send(r) // the client bounds the wait
		return l.await(n, w)
	default:
		l.settleLocked(n, todo{}, "")
	}
	l.unlock()
	return l.await(n, w)
}

// slack is how long a request may outlast its asker's wait. The wait must end by the asker's own
// clock, and not by an error of the connection.
const slack = 20 * time.Millisecond

// beginLocked begins an attempt for the first waiter. The caller sends the request.
func (l *Locker) beginLocked(n *lock) request {
	l.attempts++
	w, now := n.firstLocked(), l.now()
	n.ask(now, l.attempts, w.lease)
	// The request outlives the asker, because others may wait for the same answer, but only by
	// what its connection needs.
	end := min(now+third(w.lease), w.until+slack)
	if d, ok := w.ctx.Deadline(); ok {
		end = min(end, d.Sub(l.base)+slack)
	}
	n.gone = make(chan struct{})
	return request{n, w, n.attempt, now, end, n.gone}
}

// send sends a request, and processes the answer.
func (l *Locker) send(r request) {
	n, w := r.lock, r.asker
	args := []any{w.lease.Milliseconds()}
	if !w.try {
		args = append(args, (r.sent - w.begun).Microseconds())
	}
	ctx := bound(w.ctx, l.base.Add(r.end), r.gone)
	a, err := l.server.do(ctx, acquireScript, n, r.attempt, args...)
	l.mu.Lock()
	defer l.unlock()
	if err != nil {
		l.unansweredLocked(r, err)
		return
	}
	next := n.answered(r.attempt, a, !w.try, r.sent, l.now())
	if w.try && w.place != nil && n.state == idle {
		n.dismissLocked(w, result{err: notAcquired(w.key)})
	}
	l.settleLocked(n, next, Free)
}

// unansweredLocked processes an error. All waiters from before the request was sent share its
// timeout. Any other error is the asker's alone. A refusal that will pass is not returned: the
// request is repeated for as long as the asker waits.
func (l *Locker) unansweredLocked(r request, err error) {
	n, w := r.lock, r.asker
	current := n.attempt == r.attempt && n.state == asking
	if current && passing(err) && !w.try && !l.closed {
		w.refusal = err
		time.AfterFunc(nextPause(0, w.lease), func() {
			l.mu.Lock()
			defer l.unlock()
			l.settleLocked(n, l.failedLocked(n, r.attempt, err), "")
		})
		return
	}
	shared := timeout(err) && r.end == r.sent+third(w.lease) // and not because the asker's wait was shorter
	for first := n.firstLocked(); current && first != nil && (first == w || shared && first.begun <= r.sent); first = n.firstLocked() {
		n.dismissLocked(first, result{err: failed("acquire", w.key, err)})
	}
	l.settleLocked(n, l.failedLocked(n, r.attempt, err), "")
}

// failedLocked ends an attempt without an answer. An attempt that cannot have been carried out
// needs no clean-up.
func (l *Locker) failedLocked(n *lock, attempt uint64, err error) todo {
	next := n.failed(attempt)
	if definite(err) {
		l.forgetLocked(attempt)
		next.over = 0
	}
	return next
}

// await waits for the lock, an error, or the end of the caller's wait.
func (l *Locker) await(n *lock, w *waiter) (context.Context, *Lease, error) {
	var patience <-chan time.Time
	if w.until < never {
		patience = time.After(w.until - l.now())
	}
	for {
		select {
		case <-w.taken:
			protect(func() { l.opts.Hooks.Waiting(w.ctx, Event{Key: w.key, Took: l.now() - w.begun}) }, func() { l.abandon(n, w) })
			continue
		case r := <-w.answer:
			return l.tell(w, r)
		case <-w.ctx.Done():
		case <-patience:
		}
		l.abandon(n, w)
		return nil, nil, notAcquired(w.key, context.Cause(w.ctx), w.refusal)
	}
}

// protect calls a hook, and undo if the hook panics.
func protect(hook, undo func()) {
	returned := false
	defer func() {
		if !returned {
			undo()
		}
	}()
	hook()
	returned = true
}

// abandon ends a wait. Its result can have come at the last moment. A lock that nobody wants any
// more is released, and the caller does not wait for that.
func (l *Locker) abandon(n *lock, w *waiter) {
	if !l.leave(n, w) {
		if r := <-w.answer; r.hold != nil {
			l.calls.Go(func() { _, _ = r.hold.leave() })
		}
	}
}

// tell turns a result into the return values of Acquire.
func (l *Locker) tell(w *waiter, r result) (context.Context, *Lease, error) {
	if r.err != nil {
		raise(r.err)
		if (w.ctx.Err() != nil || l.now() >= w.until) && !errors.Is(r.err, ErrNotAcquired) {
			r.err = notAcquired(w.key, context.Cause(w.ctx), r.err)
		}
		return nil, nil, r.err
	}
	h := r.hold
	if hook := l.opts.Hooks.Acquired; hook != nil {
		e := h.event(nil)
		e.Took, e.From = h.begun-w.begun, h.from
		protect(func() { hook(w.ctx, e) }, func() { _ = h.Release() })
	}
	l.eviction.Do(func() { l.work.Go(l.askForEviction) }) // Close still waits for this call
	return h, &h.first, nil
}

// leave removes a waiter that gave up. It returns false if the waiter already has a result. The
// place in Redis's queue belongs to the process. The next waiter takes it over, if it wants the
// same lease.
func (l *Locker) leave(n *lock, w *waiter) bool {
	l.mu.Lock()
	defer l.unlock()
	if w.place == nil {
		return false
	}
	wasFirst := n.firstLocked() == w
	n.dismissLocked(w, result{}) // nobody reads it
	next := n.firstLocked()
	if wasFirst && (n.state == asking || n.state == waiting) && (next == nil || next.lease != n.lease) {
		close(n.gone)
		l.settleLocked(n, n.giveUp(), "")
	}
	return true
}
