package redislock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Lease is one entry into a held lock. It must be released once. It is safe for concurrent use.
type Lease struct {
	key      string
	hold     *hold
	entry    *entry       // with a context of its own, or nil
	released *atomic.Bool // copies share it
}

func newLease(key string, h *hold) *Lease { return &Lease{key, h, nil, new(atomic.Bool)} }

// Key returns the key that was locked, as the caller spelled it.
func (s *Lease) Key() string { return s.key }

// Token returns the fencing token of the hold. It is larger than that of every earlier holder of
// the key, and the same for all entries into one hold. Give it to the database to compare. Fencing in
// the package documentation says how, and has two exceptions. It is 0 for lockers without tokens.
func (s *Lease) Token() int64 { return s.hold.fence }

// Deadline returns the time, on this process's monotonic clock, at which the hold ends unless it is
// renewed. It lies before the time at which Redis can give the lock to another holder.
func (s *Lease) Deadline() time.Time { return s.hold.locker.base.Add(instant(s.hold.deadline.Load())) }

// Valid reports whether the lock is held now, by the clock. A moment later it may be lost.
func (s *Lease) Valid() bool {
	return !s.released.Load() && s.hold.loss() == nil && !s.hold.isReleased()
}

// Release ends this entry. The last Release of a holder's entries releases the lock. Release takes
// no context, because it must work when the holder's context has ended. It takes at most 5 seconds, or
// a third of the lease if that is shorter, where the client has a connection for it and
// ContextTimeoutEnabled. Otherwise the client's timeouts for one request come on top of it.
//
// [ErrNotHeld] means that the lock was lost, or that this lease was released before. No other hold
// is affected. Nil does not prove that the lock was still held: when a release passes the lock on
// inside the process, Redis is not asked. [ErrNotReleased] means that Redis did not answer, or
// refused. The Locker then repeats the release in the background until the lease is over.
func (s *Lease) Release() error { return s.Leave(0) }

// Leave is [Lease.Release] of a lock that stays taken for d: a job that is done need not be done again in its period.
// Nobody holds it meanwhile, and nobody renews it. After an error it ends with the lease or after d, and so it does
// where a renewal that was under way is carried out later: Leave is not repeated. It releases at once after MaxHold or
// Grace, and if d is not positive. Leave of an inner entry leaves the outer ones as they are.
func (s *Lease) Leave(d time.Duration) error {
	if s.released.Swap(true) {
		return notHeld(s.key)
	}
	if s.entry != nil {
		s.entry.cancel((*released)(s.hold))
		for h := s.entry.innermost; h != nil; h = h.around() {
			h.inner.Delete(s.entry)
		}
	}
	return s.hold.release(d)
}

// hold is one holder's time with the lock. It is the context of the first entry.
type hold struct {
	entry
	locker  *Locker
	lock    *lock
	parent  context.Context // that Acquire was called with; that of outer if it was outer
	attempt uint64
	lease   time.Duration
	fence   int64
	begun   instant
	outer   atomic.Pointer[hold] // see around
	key     string               // as the first caller spelled it
	from    Handoff

	deadline atomic.Int64          // an instant: machine.deadline, for readers without Locker.mu; set with it
	failed   atomic.Pointer[error] // of the last renewal
	ended    atomic.Pointer[error] // why: ErrLost, or *released; nil while it is held
	inner    sync.Map              // of *entry with a context of its own: the loss of this hold ends it

	entries int // leases that were not released yet; Locker.mu guards it
}

// holdsOf, as a pointer, is the key under which a context has its innermost hold of a Locker.
type holdsOf Locker

// entry is the context of an entry into a hold. It compares the clock, and does not wait for the
// scheduler.
type entry struct {
	context.Context
	cancel    context.CancelCauseFunc
	innermost *hold // that its context has: the one that was entered, or one in it
}

func (e *entry) Err() error {
	e.look()
	return e.Context.Err()
}

// Value is also asked by a child that is made. A child of a hold that is over ends at once.
func (e *entry) Value(key any) any {
	if key == (*holdsOf)(e.innermost.locker) {
		return e.innermost
	}
	e.look()
	return e.Context.Value(key)
}

// look ends the context with the first of its holds that is lost, and says why that is.
func (e *entry) look() (why error) {
	for h := e.innermost; h != nil && why == nil; h = h.around() {
		if why = h.loss(); why != nil {
			e.cancel(why)
		}
	}
	return why
}

func (h *hold) String() string { return fmt.Sprintf("%v.Holding(%q)", h.parent, h.key) }

// Deadline is the parent's, because each renewal moves that of the lock.
func (h *hold) Deadline() (time.Time, bool) { return h.parent.Deadline() }

// loss says why the hold is over without having been released, or nil. The first caller that sees its
// deadline passed ends it.
func (h *hold) loss() error {
	if h.ended.Load() == nil && h.locker.now() >= instant(h.deadline.Load()) {
		h.end(lost(h.key, ErrLeaseOver, h.failed.Load()))
	}
	if why := h.ended.Load(); why != nil && !h.isReleased() {
		return *why
	}
	return nil
}

func (h *hold) isReleased() bool {
	why := h.ended.Load()
	return why != nil && *why == error((*released)(h))
}

// end ends the hold, once.
func (h *hold) end(why error) {
	if h.ended.CompareAndSwap(nil, &why) {
		h.cancel(why)
	}
}

// released is the cause of a context that ended because its hold was released. A hold that was
// acquired under that context goes on under its parent.
type released hold

func (*released) Error() string        { return context.Canceled.Error() }
func (*released) Is(target error) bool { return target == context.Canceled }

// around returns the innermost hold in whose context this one was asked for, or nil. It skips released
// holds, and forgets them: a chain of locks that are acquired hand over hand does not grow.
func (h *hold) around() *hold {
	outer := h.outer.Load()
	for outer != nil && outer.isReleased() {
		outer = outer.outer.Load()
		h.outer.Store(outer)
	}
	return outer
}

// of returns the hold of a lock among h and the holds around it, or nil.
func (h *hold) of(name string) *hold {
	for h != nil && (h.lock.name != name || h.isReleased()) {
		h = h.around()
	}
	return h
}

func newHoldLocked(l *Locker, n *lock, w *waiter, from Handoff) *hold {
	h := &hold{locker: l, lock: n, parent: w.ctx, attempt: n.attempt, lease: n.lease, fence: n.token(), begun: l.now(), key: w.key, from: from, entries: 1}
	l.calls.Add(1) // until it is released or lost
	h.innermost = h
	h.deadline.Store(int64(n.deadline))
	if w.outer == nil {
		h.Context, h.cancel = context.WithCancelCause(w.ctx)
		return h
	}
	if h.outer.Store(w.outer); w.ctx == context.Context(w.outer) {
		h.parent = w.outer.parent // it has the same values
	}
	h.Context, h.cancel = context.WithCancelCause(context.WithoutCancel(h.parent))
	if d, ok := w.ctx.Deadline(); ok { // that of a context between the two locks
		timer := time.AfterFunc(max(1, time.Until(d)), func() { h.cancel(context.DeadlineExceeded) })
		context.AfterFunc(h.Context, func() { timer.Stop() })
	}
	h.follow(w.ctx)
	return h
}

// follow ends the hold with ctx, unless ctx ended because an outer hold was released. It then goes on
// with the next hold around it, or with the context of that one.
func (h *hold) follow(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() {
		out, ok := errors.AsType[*released](context.Cause(ctx))
		if next := h.around(); !ok {
			h.endInner(context.Cause(ctx))
		} else if inner, _ := out.parent.Value((*holdsOf)(h.locker)).(*hold); next != nil && next != inner {
			h.follow(next)
		} else {
			h.follow(out.parent)
		}
	})
	context.AfterFunc(h.Context, func() { stop() })
}

// endInner ends the hold's context, and if a lock was lost those of entries that do not end with it.
func (h *hold) endInner(why error) {
	if h.cancel(why); errors.Is(why, ErrLost) {
		h.inner.Range(func(e, _ any) bool { e.(*entry).cancel(why); return true })
	}
}

// reenterLocked enters the hold again. The innermost hold of ctx is h, or one in it.
func (h *hold) reenterLocked(ctx context.Context, key string, innermost *hold) (context.Context, *Lease, error) {
	h.entries++
	if ctx.Done() == h.Done() {
		return ctx, newLease(key, h), nil
	}
	e := &entry{innermost: innermost} // ctx does not end with the hold, such as one of context.WithoutCancel
	e.Context, e.cancel = context.WithCancelCause(ctx)
	for x := innermost; x != nil; x = x.around() { // the contexts between may have ended, and tell of no loss any more
		x.inner.Store(e, nil)
	}
	return e, &Lease{key, h, e, new(atomic.Bool)}, nil
}

func (h *hold) event(err error) Event {
	return Event{Key: h.key, Token: h.fence, Took: h.locker.now() - h.begun, Err: err}
}

// release is Leave of [Lease].
func (h *hold) release(stays time.Duration) error {
	last, err := h.leave(stays)
	if hook := h.locker.opts.Hooks.Released; hook != nil && last {
		hook(h.parent, h.event(err))
	}
	raise(err)
	return err
}

// leave ends one entry. The last one passes the lock to the next goroutine of this process, or
// releases it in Redis, or leaves it there for some time.
func (h *hold) leave(stays time.Duration) (last bool, err error) {
	l, n := h.locker, h.lock
	l.mu.Lock()
	if h.loss() != nil && n.hold == h { // by the clock: the timer has not come to it
		l.settleLocked(n, n.lose(ErrLeaseOver), "")
	}
	if h.entries--; n.hold != h || h.entries > 0 {
		defer l.unlock()
		if n.hold == h {
			return false, nil
		}
		if errors.Is(h.loss(), ErrHeldTooLong) && h.entries == 0 && !l.closed { // it was left to its lease, and its holder is done
			l.cleanLocked(n, h.attempt, h.lease)
		}
		return false, notHeld(h.key)
	}
	h.end((*released)(h))
	n.hold = nil
	w := n.firstLocked()
	if w != nil && stays <= 0 && n.mayPass(w.Lease, l.now()) {
		l.settleLocked(n, n.pass(), Local)
		l.calls.Done()
		l.unlock()
		return true, nil
	}
	r := request{lock: n, sent: l.now()}
	n.stop()
	if w != nil && stays <= 0 {
		r = l.beginLocked(n, w, false) // the release also is the request of that attempt
	}
	l.unlock()
	return true, l.sendRelease(h, r, stays) // which has the rest settled
}

// maxRelease bounds a Release that Redis does not answer, or refuses. The Locker goes on in the background.
const maxRelease = 5 * time.Second

// sendRelease releases a hold in Redis, and processes the answer. The same request queues for the
// next waiter of this process.
func (l *Locker) sendRelease(h *hold, r request, stays time.Duration) error {
	defer l.calls.Done()
	script, next := releaseScript, []any(nil)
	if w := r.asker; w != nil {
		next = []any{r.attempt, w.Lease.Milliseconds(), (r.sent - w.begun).Microseconds()}
	}
	if stays > 0 {
		script, next = renewScript, []any{max(stays.Milliseconds(), 1)}
	}
	n, end := h.lock, r.sent+min(third(h.lease), maxRelease)
	ctx := bounded{context.WithoutCancel(h.parent), l.base.Add(end)}
	a, err := l.server.do(ctx, script, n, h.attempt, next...)
	for pause := nextPause(0, h.lease); passing(err) && l.now()+pause <= end; pause = nextPause(pause, h.lease) {
		time.Sleep(pause)
		a, err = l.server.do(ctx, script, n, h.attempt, next...)
	}
	l.mu.Lock()
	defer l.unlock()
	if err != nil {
		if stays <= 0 {
			l.cleanLocked(n, h.attempt, h.lease)
		}
		l.settleLocked(n, l.failedLocked(n, r.attempt, err), "")
		return failed(ErrNotReleased, "release", h.key, err)
	}
	n.served()
	l.settleLocked(n, n.answered(r.attempt, a, true, r.sent, l.now()), Remote)
	if a.kind == replyDropped {
		return notHeld(h.key)
	}
	return nil
}
