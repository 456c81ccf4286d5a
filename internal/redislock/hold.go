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
	hold     Hold
	entry    *entry       // with a context of its own, or nil
	released *atomic.Bool // copies share it
}

// Hold is what another locker gives to [NewLease]. Callers of a locker do not need it.
type Hold interface {
	Token() int64
	Until() time.Time
	Valid() bool
	Release() error // called once for each lease
}

// NewLease makes the Lease of another locker's hold.
func NewLease(key string, h Hold) *Lease {
	return &Lease{key: key, hold: h, released: new(atomic.Bool)}
}

// Key returns the key that was locked, as the caller spelled it.
func (s *Lease) Key() string { return s.key }

// Token returns the fencing token of the hold. It is larger than that of every earlier holder of
// the key, and the same for all entries into one hold. Give it to the database to compare. Fencing in
// the package documentation says how, and has two exceptions. It is 0 for lockers without tokens.
func (s *Lease) Token() int64 { return s.hold.Token() }

// Deadline returns the time, on this process's monotonic clock, at which the hold ends unless it is
// renewed. It lies before the time at which Redis can give the lock to another holder.
func (s *Lease) Deadline() time.Time { return s.hold.Until() }

// Valid reports whether the lock is held now, by the clock. A moment later it may be lost.
func (s *Lease) Valid() bool { return !s.released.Load() && s.hold.Valid() }

// Release ends this entry. The last Release of a holder's entries releases the lock. Release takes
// no context, because it must work when the holder's context has ended. It takes at most 5 seconds, or
// a third of the lease if that is shorter, where the client has a connection for it and
// ContextTimeoutEnabled. Otherwise the client's timeouts for one request come on top of it.
//
// [ErrNotHeld] means that the lock was lost, or that this lease was released before. No other hold
// is affected. Nil does not prove that the lock was still held: when a release passes the lock on
// inside the process, Redis is not asked. Any other error means that Redis did not answer, or
// refused. The Locker then repeats the release in the background until the lease is over.
func (s *Lease) Release() error {
	if s.released.Swap(true) {
		return notHeld(s.key)
	}
	if s.entry != nil {
		s.entry.cancel((*released)(s.entry.hold))
		s.entry.hold.inner.Delete(s.entry)
	}
	return s.hold.Release()
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
	first   Lease
	left    atomic.Bool // first was released

	deadline atomic.Int64          // an instant: machine.deadline, for readers without Locker.mu; set with it
	failed   atomic.Pointer[error] // of the last renewal
	ended    atomic.Int32          // a way to end
	once     sync.Once             // of the end
	why      error                 // once it is lost
	inner    sync.Map              // of *entry with a context of its own

	// Locker.mu guards these.
	entries   int  // leases that were not released yet
	abandoned bool // it is lost, and left to its lease
}

// Ways to end.
const (
	isHeld = iota
	wasReleased
	wasLost
)

// holdsOf, as a pointer, is the key under which a context has its innermost hold of a Locker.
type holdsOf Locker

// entry is the context of an entry into a hold. It compares the clock, and does not wait for the
// scheduler.
type entry struct {
	context.Context
	cancel context.CancelCauseFunc
	hold   *hold
}

func (e *entry) Err() error {
	e.look()
	return e.Context.Err()
}

// Value is also asked by a child that is made. A child of a hold that is over ends at once.
func (e *entry) Value(key any) any {
	if key == (*holdsOf)(e.hold.locker) {
		return e.hold
	}
	e.look()
	return e.Context.Value(key)
}

func (e *entry) look() {
	if e.hold.isLost() {
		e.cancel(e.hold.why)
	}
}

func (h *hold) String() string { return fmt.Sprintf("%v.Holding(%q)", h.parent, h.key) }

// Deadline is the parent's, because each renewal moves that of the lock.
func (h *hold) Deadline() (time.Time, bool) { return h.parent.Deadline() }

// isLost says whether the hold is over without having been released. The first caller that sees its
// deadline passed ends it.
func (h *hold) isLost() bool {
	if h.ended.Load() == isHeld && h.locker.now() >= instant(h.deadline.Load()) {
		h.end(wasLost, lost(h.key, ErrLeaseOver, h.failed.Load()))
	}
	if outer := h.around(); outer != nil && h.ended.Load() == isHeld && outer.isLost() {
		h.cancel(outer.why) // this lock is held still, but the work in it has lost the other one
	}
	return h.ended.Load() == wasLost
}

// end ends the hold, once.
func (h *hold) end(how int32, cause error) {
	h.once.Do(func() {
		h.why = cause
		h.ended.Store(how)
		h.cancel(cause)
	})
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
	for outer != nil && outer.ended.Load() == wasReleased {
		outer = outer.outer.Load()
		h.outer.Store(outer)
	}
	return outer
}

// of returns the hold of a lock among h and the holds around it, or nil.
func (h *hold) of(name string) *hold {
	for h != nil && (h.lock.name != name || h.ended.Load() == wasReleased) {
		h = h.around()
	}
	return h
}

func newHoldLocked(l *Locker, n *lock, w *waiter, from Handoff) *hold {
	h := &hold{locker: l, lock: n, parent: w.ctx, attempt: n.attempt, lease: n.lease, fence: n.token(), begun: l.now(), key: w.key, from: from, entries: 1}
	h.first, h.hold = Lease{key: w.key, hold: h, released: &h.left}, h
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
		timer := time.AfterFunc(time.Until(d), func() { h.cancel(context.DeadlineExceeded) })
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
			h.cancel(context.Cause(ctx))
		} else if inner, _ := out.parent.Value((*holdsOf)(h.locker)).(*hold); next != nil && next != inner {
			h.follow(next)
		} else {
			h.follow(out.parent)
		}
	})
	context.AfterFunc(h.Context, func() { stop() })
}

// reenter enters the hold again. It returns nothing if the hold was released meanwhile. A lost hold
// cannot be entered, because its holder must stop.
func (h *hold) reenter(ctx context.Context, key string) (context.Context, *Lease, error) {
	l := h.locker
	l.mu.Lock()
	defer l.unlock()
	switch {
	case h.isLost():
		return nil, nil, fmt.Errorf("enter %q again: %w", key, h.why)
	case h.ended.Load() == wasReleased:
		return nil, nil, nil
	case ctx.Err() != nil:
		return nil, nil, notAcquired(key, context.Cause(ctx))
	}
	h.entries++
	lease := NewLease(key, h)
	if ctx.Done() == h.Done() {
		return ctx, lease, nil
	}
	e := &entry{hold: h} // ctx does not end with the hold, such as one of context.WithoutCancel
	e.Context, e.cancel = context.WithCancelCause(ctx)
	h.inner.Store(e, nil)
	lease.entry = e
	return e, lease, nil
}

// Token, Until, Valid and Release (release.go) are for [Lease].
func (h *hold) Token() int64     { return h.fence }
func (h *hold) Until() time.Time { return h.locker.base.Add(instant(h.deadline.Load())) }
func (h *hold) Valid() bool      { return !h.isLost() && h.ended.Load() == isHeld }

func (h *hold) event(err error) Event {
	return Event{Key: h.key, Token: h.fence, Took: h.locker.now() - h.begun, Err: err}
}
