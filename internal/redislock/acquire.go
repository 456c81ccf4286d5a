package redislock

import (
	"context"
	"errors"
	"time"
)

// request begins an attempt: the first waiter's, who asks for it, on behalf of all who wait here.
type request struct {
	lock    *lock
	asker   *waiter
	attempt uint64
	sent    instant
	end     instant // when it has no answer
}

// enter is Acquire and TryAcquire.
func (l *Locker) enter(ctx context.Context, key string, o AcquireOptions, try bool) (context.Context, *Lease, error) {
	name := l.opts.Prefix + tagged(key)
	outer := innermost(ctx, l)
	if h := outer.of(name); h != nil {
		if held, lease, err := h.reenter(ctx, key); held != nil || err != nil {
			return held, lease, err
		}
	}
	if ctx.Err() != nil {
		return nil, nil, notAcquired(key, context.Cause(ctx))
	}
	w := &waiter{ctx: ctx, key: key, lease: o.Lease, outer: outer, begun: l.now(), told: make(chan result, 1), try: try}
	w.until = w.begun + o.Wait
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
	if try && n.state != idle {
		l.unlock()
		return nil, nil, notAcquired(key)
	}
	w.place = n.waiters.PushBack(w)
	if n.state != idle {
		// Goroutines that pass the lock on among themselves must hear when another
		// process begins to wait for it.
		if err := l.subscribeLocked(); err != nil {
			n.dismissLocked(w, result{err: failed("wait for", key, err)})
		}
		l.unlock()
		return l.await(n, w)
	}
	r := l.beginLocked(n)
	if ctx.Done() == nil && o.Wait == never {
		l.unlock()
		l.send(r) // the caller has the patience of the client
	} else {
		l.calls.Go(func() { l.send(r) })
		l.unlock()
	}
	return l.await(n, w)
}

// slack is how long a request may go on after its asker's patience: the asker is to be told by its
// own clock, and not by an error of the connection.
const slack = 20 * time.Millisecond

// beginLocked begins an attempt for the first waiter. The caller sends the request.
func (l *Locker) beginLocked(n *lock) request {
	l.attempts++
	w, now := n.firstLocked(), l.now()
	n.ask(now, l.attempts, w.lease)
	// The request outlives the asker, as others may wait for the same answer; but not by more than
	// its connection needs.
	end := min(now+third(w.lease), w.until+slack)
	if d, ok := w.ctx.Deadline(); ok {
		end = min(end, d.Sub(l.base)+slack)
	}
	return request{n, w, n.attempt, now, end}
}

// send sends a request, and takes in the answer.
func (l *Locker) send(r request) {
	n, w := r.lock, r.asker
	args := []any{w.lease.Milliseconds()}
	if !w.try {
		args = append(args, (r.sent - w.begun).Microseconds())
	}
	a, err := l.server.do(bound(w.ctx, l.base.Add(r.end)), acquireScript, n, r.attempt, args...)
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

// unansweredLocked takes in an error. Those who already waited when the request was sent share its
// timeout; any other error is the asker's. A refusal that will pass is nobody's: the lock is asked
// for again, for as long as the asker waits.
func (l *Locker) unansweredLocked(r request, err error) {
	n, w := r.lock, r.asker
	current := n.attempt == r.attempt && n.state == asking
	if current && passing(err) && !w.try && !l.closed {
		w.refusal = err
		time.AfterFunc(min(w.lease/24, 100*time.Millisecond), func() {
			l.mu.Lock()
			defer l.unlock()
			l.settleLocked(n, l.failedLocked(n, r.attempt, err), "")
		})
		return
	}
	shared := timeout(err) && r.end == r.sent+third(w.lease) // and not for want of the asker's patience
	for first := n.firstLocked(); current && first != nil && (first == w || shared && first.begun <= r.sent); first = n.firstLocked() {
		n.dismissLocked(first, result{err: failed("acquire", w.key, err)})
	}
	l.settleLocked(n, l.failedLocked(n, r.attempt, err), "")
}

// failedLocked ends an attempt that has got no answer. What cannot have been carried out is not to
// be cleaned up.
func (l *Locker) failedLocked(n *lock, attempt uint64, err error) todo {
	next := n.failed(attempt)
	if definite(err) {
		delete(l.cleaner.attempts, attempt)
		next.over = 0
	}
	return next
}

// await waits for the lock, an error, or the end of the caller's patience.
func (l *Locker) await(n *lock, w *waiter) (context.Context, *Lease, error) {
	var patience <-chan time.Time
	if w.until < never {
		patience = time.After(w.until - l.now())
	}
	select {
	case r := <-w.told:
		return l.tell(w, r)
	case <-w.ctx.Done():
	case <-patience:
	}
	if !l.leave(n, w) {
		// What it waited for came at the last moment. A lock that nobody wants any more is
		// released.
		if r := <-w.told; r.hold != nil {
			_ = r.hold.Release()
		}
	}
	return nil, nil, notAcquired(w.key, context.Cause(w.ctx), w.refusal)
}

// tell is what Acquire returns.
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
		returned := false
		defer func() {
			if !returned { // the hook panicked
				_ = h.Release()
			}
		}()
		e := h.event(nil)
		e.Took, e.From = h.begun-w.begun, h.from
		hook(w.ctx, e)
		returned = true
	}
	l.eviction.Do(func() { l.work.Go(l.askForEviction) }) // Close still waits for this call
	return h, &h.first, nil
}

// leave takes a waiter out that gave up. It says false when it is too late for that: it has been
// told something. The place in Redis's queue is the process's: the next waiter takes it over, if it
// wants the lock for as long.
func (l *Locker) leave(n *lock, w *waiter) bool {
	l.mu.Lock()
	defer l.unlock()
	if w.place == nil {
		return false
	}
	wasFirst := n.firstLocked() == w
	n.waiters.Remove(w.place)
	w.place = nil
	next := n.firstLocked()
	if wasFirst && (n.state == asking || n.state == waiting) && (next == nil || next.lease != n.lease) {
		l.settleLocked(n, n.giveUp(), "")
	}
	return true
}
