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
	ctx     context.Context
	attempt uint64
	lease   time.Duration
	sent    instant
	queue   bool          // if it is taken
	waited  time.Duration // by the asker, so far
	free    bool          // try first whether nobody wants it
	own     bool          // the request ends with the asker's patience
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
	if o.Wait > 0 {
		w.until = w.begun + o.Wait
	}
	l.mu.Lock()
	if l.closed {
		l.unlock()
		return nil, nil, ErrClosed
	}
	l.calls.Add(1)
	defer l.calls.Done()
	n := l.lockLocked(name)
	if try && (n.state != idle || n.waiters.Len() > 0) {
		l.unlock()
		return nil, nil, notAcquired(key)
	}
	w.place = n.waiters.PushBack(w)
	if n.state != idle {
		// Goroutines that pass the lock on among themselves must hear when another
		// process begins to wait for it.
		l.subscribeLocked()
		l.unlock()
		return l.await(n, w)
	}
	r := l.beginLocked(n)
	l.unlock()
	if ctx.Done() == nil && w.until == 0 {
		l.send(r) // the caller has the patience of the client
	} else {
		go l.send(r)
	}
	return l.await(n, w)
}

// beginLocked begins an attempt for the first waiter. The caller unlocks mu, and sends it.
func (l *Locker) beginLocked(n *lock) request {
	l.calls.Add(1)
	l.attempts++
	w, now := n.firstLocked(), l.now()
	n.ask(now, l.attempts, w.lease)
	// The request outlives the asker, as others may wait for the same answer; but not by more than
	// its connection needs.
	giveUp := now + third(w.lease)
	own := w.until != 0 && w.until < giveUp
	if own {
		giveUp = w.until
	}
	deadline := l.base.Add(giveUp)
	if d, ok := w.ctx.Deadline(); ok && d.Before(deadline) {
		deadline, own = d, true
	}
	return request{
		lock: n, asker: w, ctx: bound(w.ctx, deadline), attempt: n.attempt, lease: w.lease, sent: now,
		queue: !w.try && l.hearsLocked(), waited: now - w.begun, free: n.assumeContended == 0, own: own,
	}
}

// send sends a request, and takes in the answer.
func (l *Locker) send(r request) {
	defer l.calls.Done()
	n := r.lock
	a := answer{reply: reply{kind: replyDropped}}
	if r.free {
		a.reply, a.err = l.server.do(r.ctx, l.server.acquireFree(n.keys, r.attempt, r.lease))
	}
	taken := r.free && a.err == nil && a.kind == replyDropped
	if a.err == nil && a.kind == replyDropped {
		a.reply, a.err = l.server.do(r.ctx, l.server.acquire(n.name, n.keys, r.attempt, r.lease, r.queue, r.waited))
	}

	l.mu.Lock()
	defer l.unlock()
	n.learnLocked(taken, a)
	if a.err != nil {
		l.unansweredLocked(r, a.err)
		return
	}
	next, nothing := n.answered(r.attempt, a.reply, r.queue, r.sent, l.now())
	switch {
	case !nothing:
		l.settleLocked(n, next, Free)
	case r.asker.try:
		l.failLocked(r, notAcquired(r.asker.key), true)
	case r.queue: // a newer attempt was faster
		l.askAgainLocked(r)
	default:
		l.subscribeLocked()
		l.calls.Add(1)
		go l.askWhenSubscribed(r, l.subscription)
	}
}

// unansweredLocked takes in an error. A refusal that will pass is asked again, for as long as the
// asker waits.
func (l *Locker) unansweredLocked(r request, err error) {
	if passing(err) && r.isCurrentLocked() && !r.asker.try && !l.closed {
		r.asker.refusal = err
		time.AfterFunc(min(r.lease/24, 100*time.Millisecond), func() {
			l.mu.Lock()
			defer l.unlock()
			l.askAgainLocked(r)
		})
		return
	}
	l.failLocked(r, failed("acquire", r.asker.key, err), refused(err) || unsent(err))
}

// isCurrentLocked says whether it is still this request's answer that the lock's waiters wait for.
func (r request) isCurrentLocked() bool { return r.lock.attempt == r.attempt && r.lock.state == asking }

// failLocked ends an attempt that came to nothing. Those who already waited when the request was
// sent share its timeout; any other error is the asker's.
func (l *Locker) failLocked(r request, err error, nothingDone bool) {
	n, current := r.lock, r.isCurrentLocked()
	next := n.failed(r.attempt, nothingDone)
	if current && r.asker.place != nil {
		n.dismissLocked(r.asker, result{err: err})
	}
	for w := n.firstLocked(); current && timeout(err) && !r.own && w != nil && w.begun <= r.sent; w = n.firstLocked() {
		n.dismissLocked(w, result{err: err})
	}
	l.settleLocked(n, next, "")
}

// askAgainLocked begins anew where an attempt came to nothing, unless something else has begun
// meanwhile.
func (l *Locker) askAgainLocked(r request) {
	if r.isCurrentLocked() {
		r.lock.stop()
		l.settleLocked(r.lock, todo{}, "")
	}
}

// askWhenSubscribed begins anew once grants can be pushed to this process: before that it must not
// queue.
func (l *Locker) askWhenSubscribed(r request, s *subscription) {
	defer l.calls.Done()
	err := l.subscribed(s, r.lease)
	l.mu.Lock()
	defer l.unlock()
	if err != nil {
		l.failLocked(r, failed("wait for", r.asker.key, err), true)
		return
	}
	l.askAgainLocked(r)
}

// assumed is for how many requests it is remembered that others wanted a lock.
const assumed = 16

// learnLocked notes whether others want the lock, by the answer to a request, and by whether a
// short script did nothing.
func (n *lock) learnLocked(nothing bool, a answer) {
	if nothing || a.err != nil || a.contended() {
		n.assumeContended = assumed
	} else if n.assumeContended > 0 {
		n.assumeContended--
	}
}

// await waits for the lock, an error, or the end of the caller's patience.
func (l *Locker) await(n *lock, w *waiter) (context.Context, *Lease, error) {
	var patience <-chan time.Time
	if w.until != 0 {
		timer := time.NewTimer(w.until - l.now())
		defer timer.Stop()
		patience = timer.C
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
			_ = r.hold.leave()
		}
	}
	return nil, nil, notAcquired(w.key, context.Cause(w.ctx), w.refusal)
}

// tell is what Acquire returns.
func (l *Locker) tell(w *waiter, r result) (context.Context, *Lease, error) {
	if r.err != nil {
		raise(r.err)
		over := w.until != 0 && l.now() >= w.until
		if d, ok := w.ctx.Deadline(); ok && !time.Now().Before(d) || w.ctx.Err() != nil {
			over = true
			r.err = errors.Join(endOf(w.ctx), r.err) // the connection noticed before the context did
		}
		if over && !errors.Is(r.err, ErrNotAcquired) {
			r.err = notAcquired(w.key, r.err)
		}
		return nil, nil, r.err
	}
	h := r.hold
	if hook := l.opts.Hooks.Acquired; hook != nil {
		returned := false
		defer func() {
			if !returned { // the hook panicked
				_ = h.leave()
			}
		}()
		e := h.event(nil)
		e.Took, e.From = h.begun-w.begun, r.from
		hook(w.ctx, e)
		returned = true
	}
	l.askForEviction()
	return h, &h.first.lease, nil
}

// endOf is the cause of a context's end, also where its deadline is over and its timer has not run
// yet.
func endOf(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return context.DeadlineExceeded
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
