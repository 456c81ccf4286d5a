package redislock

import (
	"cmp"
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
	ctx     context.Context
	end     context.CancelFunc // of ctx
	short   bool               // ctx ends before a third of the lease, or with the wait
}

// AcquireWith is [Locker.Acquire] with settings for this call. It panics on invalid settings.
func (l *Locker) AcquireWith(ctx context.Context, key string, o AcquireOptions) (held context.Context, lease *Lease, err error) {
	begun := l.now()
	held, lease, err = l.acquire(ctx, key, o.withDefaults(l.opts), begun)
	if hook := l.opts.Hooks.Failed; err != nil && hook != nil {
		hook(ctx, Event{Key: key, Took: l.now() - begun, Err: err})
	}
	return held, lease, err
}

func (l *Locker) acquire(ctx context.Context, key string, o AcquireOptions, begun instant) (held context.Context, lease *Lease, err error) {
	name := l.opts.Prefix + tagged(key)
	outer, _ := ctx.Value((*holdsOf)(l)).(*hold) // the innermost, or nil
	refused := func(why error) (context.Context, *Lease, error) { l.unlock(); return nil, nil, why }
	l.mu.Lock()
	switch h := outer.of(name); {
	case outer != nil && outer.look() != nil: // its holder must stop
		return refused(fmt.Errorf("acquire %q: %w", key, outer.look()))
	case ctx.Err() != nil:
		return refused(notAcquired(key, nil, context.Cause(ctx)))
	case h != nil:
		defer l.unlock()
		return h.reenterLocked(ctx, key, outer)
	case l.closed:
		return refused(ErrClosed)
	}
	w := &waiter{AcquireOptions: o, ctx: ctx, key: key, outer: outer, begun: begun, answer: make(chan result, 1), news: make(chan error, 2)}
	l.calls.Add(1)
	defer l.calls.Done()
	n := l.locks[name]
	if n == nil {
		n = newLock(name)
		l.locks[name] = n
	}
	w.place = n.waiters.PushBack(w)
	switch {
	case o.try && (n.state != idle || n.waiters.Len() > 1): // others wait meanwhile for a lease that is left
		n.dismissLocked(w, result{err: notAcquired(key, n.why(tellAfter), nil)})
	case n.state == idle && n.waiters.Len() == 1 && (l.server.inTime || !w.canGiveUp()): // to wake another goroutine takes longer
		r := l.beginLocked(n, w, true)
		l.unlock()
		l.send(r)
		return l.await(n, w)
	default:
		l.settleLocked(n, todo{}, "")
	}
	l.unlock()
	return l.await(n, w)
}

func (w *waiter) canGiveUp() bool { return w.ctx.Done() != nil || w.Wait < never }

// beginLocked begins an attempt for the first waiter. The caller sends the request. If that is the waiter itself, the
// request ends with its wait, or after a moment without an answer: a cancel is not noticed before.
func (l *Locker) beginLocked(n *lock, w *waiter, itself bool) request {
	l.attempts++
	now := l.now()
	n.ask(now, l.attempts, w.Lease)
	n.pausing, n.asked = false, cmp.Or(n.asked, l.base.Add(now)) // of several in a row, the first
	end := now + third(w.Lease)
	r := request{n, w, n.attempt, now, bounded{w.ctx, l.base.Add(end)}, func() {}, false}
	if !itself { // others may wait for the same answer
		r.ctx, r.end = context.WithCancel(bounded{context.WithoutCancel(w.ctx), l.base.Add(end)})
	} else if r.short = w.canGiveUp(); r.short {
		r.ctx, r.end = context.WithDeadline(w.ctx, l.base.Add(min(end, w.begun+w.Wait, now+tellAfter)))
	}
	n.gone = r.end
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
	r.end()
	l.mu.Lock()
	defer l.unlock()
	if err != nil {
		l.unansweredLocked(r, err)
		return
	}
	now := l.now()
	next := n.answered(r.attempt, a, !w.try, r.sent, now)
	n.served()
	if next.over == r.attempt {
		n.trouble = fmt.Errorf("its answer came after %s, and the lease is %s", now-r.sent, w.Lease)
	}
	if w.try && w.place != nil && n.state == idle {
		n.dismissLocked(w, result{err: notAcquired(w.key, n.trouble, nil)})
	}
	l.settleLocked(n, next, Free)
}

// unansweredLocked processes an error. All waiters from before the request was sent share its
// timeout, unless that is its asker's own. Any other error is the asker's alone. A refusal that
// will pass is not returned: the request is repeated for as long as the asker waits. So is one that
// had no connection, if that wait has a bound.
func (l *Locker) unansweredLocked(r request, err error) {
	n, w := r.lock, r.asker
	current := n.attempt == r.attempt && n.state == asking
	waits := r.short && timeout(err) && !w.try && l.now() < w.begun+w.Wait // another goroutine asks
	_, bounded := w.ctx.Deadline()
	again := passing(err) || w.ctx.Err() == nil && away(err) && (bounded || w.Wait < never)
	if current && again && !w.try {
		n.trouble, n.pauses, n.pausing = err, nextPause(n.pauses, w.Lease), true // the waiters are told after the pause
		time.AfterFunc(n.pauses, func() {
			l.mu.Lock()
			defer l.unlock()
			l.settleLocked(n, l.failedLocked(n, r.attempt, err), "")
		})
		return
	}
	for first := n.firstLocked(); current && !waits && first != nil && (first == w || timeout(err) && !r.short && first.begun <= r.sent); first = n.firstLocked() {
		n.dismissLocked(first, result{err: failed(ErrUnavailable, "acquire", w.key, err)})
	}
	l.settleLocked(n, l.failedLocked(n, r.attempt, err), "")
}

// failedLocked ends an attempt without an answer. An attempt that cannot have been carried out
// needs no clean-up.
func (l *Locker) failedLocked(n *lock, attempt uint64, err error) (next todo) {
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
	var patience, late <-chan time.Time
	if w.Wait < never && len(w.answer) == 0 {
		patience = time.After(max(1, w.begun+w.Wait-l.now()))
	}
	if l.opts.Hooks.NotServed != nil {
		late = time.After(max(1, w.begun+tellAfter-l.now()))
	}
	for {
		select {
		case why := <-w.news:
			hook := l.opts.Hooks.Waiting
			if why != nil {
				hook = l.opts.Hooks.NotServed
			}
			if hook != nil {
				protect(func() { hook(w.ctx, Event{Key: w.key, Took: l.now() - w.begun, Err: why}) }, func() { l.abandon(n, w) })
			}
			continue
		case <-late:
			late = time.After(tellAfter) // the silence may begin later than the wait
			l.mu.Lock()
			n.tellLocked(w.place, n.why(tellAfter))
			l.unlock()
			continue
		case r := <-w.answer:
			return l.tell(w, r)
		case <-w.ctx.Done():
		case <-patience:
		}
		return nil, nil, l.abandon(n, w)
	}
}

// protect calls a hook, and undo if the hook panics.
func protect(hook, undo func()) {
	after := undo
	defer func() { after() }()
	hook()
	after = func() {}
}

// abandon ends a wait. The place in Redis's queue belongs to the process. The next waiter takes it over,
// if it wants the same lease. The result can have come at the last moment. A lock that nobody wants any
// more is released, and the caller does not wait for that. The error says why the wait had no success.
func (l *Locker) abandon(n *lock, w *waiter) error {
	l.mu.Lock()
	err := notAcquired(w.key, w.why(n), context.Cause(w.ctx))
	if w.place != nil {
		n.dismissLocked(w, result{})
		l.settleLocked(n, todo{}, "")
	}
	l.unlock()
	r := <-w.answer
	if r.hold != nil {
		l.calls.Go(func() { _, _ = r.hold.leave(0) })
	} else if r.err != nil {
		_, _, err = l.tell(w, r)
	}
	return err
}

// tell turns a result into the return values of Acquire.
func (l *Locker) tell(w *waiter, r result) (context.Context, *Lease, error) {
	if r.err != nil {
		raise(r.err)
		if cause := context.Cause(w.ctx); cause != nil && !errors.Is(r.err, cause) {
			r.err = fmt.Errorf("%w: %w", r.err, cause)
		}
		return nil, nil, r.err
	}
	h := r.hold
	if hook := l.opts.Hooks.Acquired; hook != nil {
		e := h.event(nil)
		e.Took, e.From = h.begun-w.begun, h.from
		protect(func() { hook(w.ctx, e) }, func() { _ = h.release(0) })
	}
	l.eviction.Do(func() { l.work.Go(l.askForEviction) }) // Close still waits for this call
	return h, newLease(w.key, h), nil
}
