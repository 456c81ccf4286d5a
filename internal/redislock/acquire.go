package redislock

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// request begins an attempt. The first waiter asks, on behalf of all waiters of this process.
type request struct {
	lock    *lock
	asker   *waiter
	attempt uint64
	sent    instant
	ctx     bounded
}

// AcquireWith is [Locker.Acquire] with settings for this call. It panics on invalid settings.
func (l *Locker) AcquireWith(ctx context.Context, key string, o AcquireOptions) (held context.Context, lease *Lease, err error) {
	o = o.withDefaults(l.opts)
	name := l.opts.Prefix + tagged(key)
	outer, _ := ctx.Value((*holdsOf)(l)).(*hold) // the innermost, or nil
	l.mu.Lock()
	switch h := outer.of(name); {
	case h != nil && h.loss() != nil: // its holder must stop
		l.unlock()
		return nil, nil, fmt.Errorf("enter %q again: %w", key, h.loss())
	case ctx.Err() != nil:
		l.unlock()
		return nil, nil, notAcquired(key, context.Cause(ctx))
	case h != nil:
		defer l.unlock()
		return h.reenterLocked(ctx, key)
	case l.closed:
		l.unlock()
		return nil, nil, ErrClosed
	}
	w := &waiter{AcquireOptions: o, ctx: ctx, key: key, outer: outer, begun: l.now(), answer: make(chan result, 1)}
	if l.opts.Hooks.Waiting != nil {
		w.taken = make(chan struct{}, 1)
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
	case n.state != idle && o.try:
		n.dismissLocked(w, result{err: notAcquired(key)})
	case n.state == idle && ctx.Done() == nil && o.Wait == never:
		r := l.beginLocked(n, w)
		l.unlock()
		l.send(r) // the client bounds the wait
		return l.await(n, w)
	default:
		l.settleLocked(n, todo{}, "")
	}
	l.unlock()
	return l.await(n, w)
}

// beginLocked begins an attempt for the first waiter. The caller sends the request.
func (l *Locker) beginLocked(n *lock, w *waiter) request {
	l.attempts++
	now := l.now()
	n.ask(now, l.attempts, w.Lease)
	r := request{n, w, n.attempt, now, bounded{w.ctx, l.base.Add(now + third(w.Lease))}}
	if n.gone = func() {}; w.ctx.Done() != nil || w.Wait < never { // the asker can give up; others may wait for the same answer
		r.ctx.Context, n.gone = context.WithCancel(context.WithoutCancel(w.ctx))
	}
	return r
}

// send sends a request, and processes the answer.
func (l *Locker) send(r request) {
	n, w := r.lock, r.asker
	args := []any{w.Lease.Milliseconds(), (r.sent - w.begun).Microseconds()}
	if w.try {
		args = args[:1]
	}
	a, err := l.server.do(r.ctx, acquireScript, n, r.attempt, args...)
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
		time.AfterFunc(nextPause(0, w.Lease), func() {
			l.mu.Lock()
			defer l.unlock()
			l.settleLocked(n, l.failedLocked(n, r.attempt, err), "")
		})
		return
	}
	for first := n.firstLocked(); current && first != nil && (first == w || timeout(err) && first.begun <= r.sent); first = n.firstLocked() {
		n.dismissLocked(first, result{err: failed("acquire", w.key, err)})
	}
	l.settleLocked(n, l.failedLocked(n, r.attempt, err), "")
}

// failedLocked ends an attempt without an answer. An attempt that cannot have been carried out
// needs no clean-up.
func (l *Locker) failedLocked(n *lock, attempt uint64, err error) todo {
	var next todo
	if attempt == n.attempt && n.state == asking { // or the caller gave up and cancelled it, or a pushed grant was faster
		next = n.giveUp()
	}
	if definite(err) {
		l.forgetLocked(attempt)
		next.over = 0
	}
	return next
}

// await waits for the lock, an error, or the end of the caller's wait.
func (l *Locker) await(n *lock, w *waiter) (context.Context, *Lease, error) {
	var patience <-chan time.Time
	if w.Wait < never {
		patience = time.After(max(1, w.begun+w.Wait-l.now()))
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

// abandon ends a wait. The place in Redis's queue belongs to the process. The next waiter takes it over,
// if it wants the same lease. The result can have come at the last moment. A lock that nobody wants any
// more is released, and the caller does not wait for that.
func (l *Locker) abandon(n *lock, w *waiter) {
	l.mu.Lock()
	if w.place != nil {
		n.dismissLocked(w, result{})
		l.settleLocked(n, todo{}, "")
	}
	l.unlock()
	if r := <-w.answer; r.hold != nil {
		l.calls.Go(func() { _, _ = r.hold.leave() })
	}
}

// tell turns a result into the return values of Acquire.
func (l *Locker) tell(w *waiter, r result) (context.Context, *Lease, error) {
	if r.err != nil {
		raise(r.err)
		if (w.ctx.Err() != nil || l.now() >= w.begun+w.Wait) && !errors.Is(r.err, ErrNotAcquired) {
			r.err = notAcquired(w.key, context.Cause(w.ctx), r.err)
		}
		return nil, nil, r.err
	}
	h := r.hold
	if hook := l.opts.Hooks.Acquired; hook != nil {
		e := h.event(nil)
		e.Took, e.From = h.begun-w.begun, h.from
		protect(func() { hook(w.ctx, e) }, func() { _ = h.release() })
	}
	l.eviction.Do(func() { l.work.Go(l.askForEviction) }) // Close still waits for this call
	return h, newLease(w.key, h), nil
}
