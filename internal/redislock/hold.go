package redislock

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// hold is one holder's time with the lock, and the context of that time. Locker.mu guards what changes.
type hold struct {
	context.Context
	cancel  context.CancelCauseFunc
	locker  *Locker
	name    *name
	attempt uint64
	token   int64
	begun   time.Time
	outer   *hold     // of another key of the Locker, in whose context this one was asked for; or nil
	first   Lease     // of the first entry
	entries int       // leases that were not released yet
	ended   bool      // released or lost
	last    time.Time // its deadline, once it has ended
}

// holdsOf, as a pointer, is the key under which a context has its innermost hold of a Locker.
type holdsOf Locker

func (h *hold) Value(key any) any {
	if key == (*holdsOf)(h.locker) {
		return h
	}
	return h.Context.Value(key)
}

func (h *hold) String() string { return fmt.Sprintf("%v.Holding(%q)", h.Context, h.name.key) }

func innermost(ctx context.Context, l *Locker) *hold {
	h, _ := ctx.Value((*holdsOf)(l)).(*hold)
	return h
}

// of finds the hold of a key among a hold and those around it. It returns nil if there is none.
func (h *hold) of(key string) *hold {
	for h != nil && h.name.key != key {
		h = h.outer
	}
	return h
}

func newHold(l *Locker, n *name, w *waiter) *hold {
	h := &hold{locker: l, name: n, attempt: n.attempt, token: n.grant.token(), begun: time.Now(), outer: w.outer, entries: 1}
	h.first.hold = h
	h.Context, h.cancel = context.WithCancelCause(w.ctx)
	return h
}

// end ends the held context; the cause is nil after a release.
func (h *hold) end(cause error) {
	h.ended, h.last = true, h.name.grant.deadline
	h.cancel(cause)
}

// reenter lets a holder in again. A hold that is over is not entered: whoever
// still works under it must stop.
func (l *Locker) reenter(ctx context.Context, h *hold) (context.Context, *Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h.ended || !time.Now().Before(h.name.grant.deadline) {
		return nil, nil, fmt.Errorf("enter %q again: %w", h.name.key, ErrLost)
	}
	if ctx.Err() != nil {
		return nil, nil, notAcquired(h.name.key, context.Cause(ctx))
	}
	h.entries++
	return ctx, &Lease{hold: h}, nil
}

// leave ends one entry, and with the last one gives the lock back.
func (h *hold) leave() error {
	l, n := h.locker, h.name
	l.mu.Lock()
	if h.ended {
		l.mu.Unlock()
		return fmt.Errorf("release %q: %w", n.key, ErrNotHeld)
	}
	if h.entries--; h.entries > 0 {
		l.mu.Unlock()
		return nil
	}
	if !time.Now().Before(n.grant.deadline) {
		l.lose(n)
		l.mu.Unlock()
		l.hookLost(n.key)
		return fmt.Errorf("release %q: %w", n.key, ErrNotHeld)
	}
	h.end(nil)
	var err error
	switch l.dismissGone(n); {
	case n.first() != nil && l.mayPass(n):
		l.pass(n)
		l.mu.Unlock()
	case n.first() == nil && n.comesBack && n.grant.others > 0 && l.mayPass(n):
		l.linger(n)
		l.mu.Unlock()
	default:
		err = l.releaseRemotely(n) // unlocks
	}
	if hook := l.opts.Hooks.Released; hook != nil {
		hook(n.key, time.Since(h.begun))
	}
	return err
}

// releaseRemotely gives the lock back to Redis and, in the same request, queues
// for the next waiter of this process. It is called with Locker.mu, and unlocks it.
func (l *Locker) releaseRemotely(n *name) error {
	attempt, next, sent, wanted := n.attempt, uint64(0), time.Now(), n.grant.others > 0
	var waited time.Duration
	n.hold = nil
	l.calls.Add(1)
	defer l.calls.Done()
	if n.first() != nil && l.listening() {
		next = l.nextAttempt()
		n.state, n.attempt, n.bound = asking, next, sent
		waited = sent.Sub(n.first().begun)
	} else {
		l.askNext(n)
	}
	alone := next == 0 && !wanted && n.wary == 0
	l.mu.Unlock()

	ctx := bounded{l.ctx, sent.Add(l.opts.beatEvery())}
	r, err := reply{kind: replyDropped}, error(nil)
	if alone {
		r, err = l.server.releaseUnwanted(ctx, n, attempt)
	}
	refused := err == nil && r.kind == replyDropped
	if refused {
		r, err = l.server.release(ctx, n, attempt, next, waited)
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	n.learn(alone && refused, r, err)
	if n.left = (time.Time{}); wanted && next == 0 {
		n.left = time.Now()
	}
	if err != nil {
		l.giveBack(n, attempt)
		if next != 0 {
			l.takeBack(n, next)
		}
	}
	if next != 0 && n.attempt == next && n.state == asking {
		switch {
		case err != nil || r.kind == replyNotHeld:
			l.askNext(n)
		case r.kind == replyHeld:
			l.granted(n, r.epoch, r.others, sent, Remote)
		default:
			l.queued(n, r)
		}
	}
	if err != nil {
		return unknown("release", n.key, context.Background(), err)
	}
	if r.kind == replyNotHeld {
		return fmt.Errorf("release %q: %w", n.key, ErrNotHeld)
	}
	return nil
}

// linger keeps a lock for as long as it takes to start the goroutine that gives it back: who comes
// back for it at once, as in a loop, finds it here. It is called with Locker.mu.
func (l *Locker) linger(n *name) {
	n.state = lingering
	l.calls.Add(1)
	go func() {
		defer l.calls.Done()
		l.mu.Lock()
		if n.state != lingering {
			l.mu.Unlock()
			return
		}
		n.comesBack = n.first() != nil
		_ = l.releaseRemotely(n) // unlocks; what fails is sent again
	}()
}

func (h *hold) extend(ctx context.Context) error {
	if !h.valid() {
		return fmt.Errorf("extend %q: %w", h.name.key, ErrNotHeld)
	}
	sent := time.Now()
	b := beat{h.name, h.attempt, true}
	replies, err := h.locker.server.beat(ctx, []beat{b})
	if err == nil && replies[0].kind == replyFailed {
		err = errors.New("not done by Redis")
	}
	if err != nil {
		return unknown("extend", h.name.key, ctx, err)
	}
	if h.locker.beaten(b, sent, replies[0]); !h.valid() {
		return fmt.Errorf("extend %q: %w", h.name.key, ErrNotHeld)
	}
	return nil
}

func (h *hold) key() string  { return h.name.key }
func (h *hold) fence() int64 { return h.token }

func (h *hold) until() time.Time {
	h.locker.mu.Lock()
	defer h.locker.mu.Unlock()
	if h.ended {
		return h.last
	}
	return h.name.grant.deadline
}

func (h *hold) valid() bool {
	h.locker.mu.Lock()
	defer h.locker.mu.Unlock()
	return !h.ended && time.Now().Before(h.name.grant.deadline)
}

// unknown wraps an error of the transport, after which nobody knows whether the
// request was carried out.
func unknown(doing, key string, ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if d, ok := ctx.Deadline(); ok && cause == nil && !time.Now().Before(d) {
		cause = context.DeadlineExceeded // the connection noticed before the context did
	}
	if cause != nil {
		return notAcquired(key, errors.Join(cause, err))
	}
	return fmt.Errorf("redislock: %s %q: outcome unknown: %w", doing, key, err)
}
