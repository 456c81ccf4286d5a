package redislock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Lease is one entry into a held lock, to be released once. It is safe for
// concurrent use.
type Lease struct {
	key      string
	hold     Hold
	entry    *entry // with a context of its own, or nil
	released atomic.Bool
}

// Hold is what a lease stands for. Callers do not need it: who writes another locker gives it to
// [NewLease].
type Hold interface {
	Token() int64
	Until() time.Time
	Valid() bool
	Release() error // called once for each lease
	Extend(ctx context.Context) error
}

// NewLease is for those who write another locker.
func NewLease(key string, h Hold) *Lease { return &Lease{key: key, hold: h} }

// Key is the key that was locked, as the caller spelled it.
func (s *Lease) Key() string { return s.key }

// Token is the fencing token of the hold: larger than that of every earlier holder
// of the key, and the same for all entries into one hold. Give it to the database
// to compare: see Fencing in the package documentation. It is 0 for lockers that have none.
func (s *Lease) Token() int64 { return s.hold.Token() }

// Deadline is the time, on this process's monotonic clock, at which the hold ends
// unless it is renewed. It lies before the time at which Redis can give the lock to
// anybody else.
func (s *Lease) Deadline() time.Time { return s.hold.Until() }

// Valid says whether the lock is held now, by the clock. A moment later it may be lost.
func (s *Lease) Valid() bool { return !s.released.Load() && s.hold.Valid() }

// Release releases the lock; where the holder entered several times, with the
// last Release of all. It takes no context, because it must work when the holder's
// has ended; it takes no longer than a third of the lease and the client's timeouts.
//
// [ErrNotHeld] means that the lock was lost, or this lease released before; nobody else's hold is
// touched. Nil does not mean the opposite where the lock was passed on inside the process, because
// Redis was not asked. Any other error means that Redis did not answer, or refused: the Locker goes
// on trying in the background until the lease is over.
func (s *Lease) Release() error {
	if s.released.Swap(true) {
		return notHeld("release", s.key)
	}
	if s.entry != nil {
		s.entry.cancel((*released)(s.entry.hold))
	}
	return s.hold.Release()
}

// Extend gives the hold a full lease again, now. It is for those who turned renewal off with
// Options.FixedLease. [ErrNotHeld] means that the lock was lost or released. Any other error means
// that Redis did not answer, or refused, and leaves the hold as it was.
func (s *Lease) Extend(ctx context.Context) error {
	if s.released.Load() {
		return notHeld("extend", s.key)
	}
	return s.hold.Extend(ctx)
}

// hold is one holder's time with the lock. It is the context of the first entry.
type hold struct {
	entry
	locker  *Locker
	lock    *lock
	parent  context.Context // that Acquire was called with
	attempt uint64
	lease   time.Duration
	fence   int64
	begun   instant
	outer   *hold  // the innermost in whose context this one was asked for; or nil
	key     string // as the first caller spelled it
	from    Handoff
	first   Lease

	deadline atomic.Int64          // an instant
	failed   atomic.Pointer[error] // of the last renewal
	ended    atomic.Int32          // a way to end
	once     sync.Once             // of the end
	why      error                 // once it is lost

	// Locker.mu guards these.
	entries int      // leases that were not released yet
	inner   []*entry // with a context of their own
}

// Ways to end.
const (
	isHeld = iota
	wasReleased
	wasLost
)

// holdsOf, as a pointer, is the key under which a context has its innermost hold of a Locker.
type holdsOf Locker

// entry is the context of an entry into a hold. Who looks at it looks at the clock, and not at what
// the scheduler has come to.
type entry struct {
	context.Context
	cancel context.CancelCauseFunc
	hold   *hold
}

func (e *entry) Err() error {
	e.look()
	return e.Context.Err()
}

// Value is also what context.Cause asks for.
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

// Deadline is the parent's: that of the lock is put off all the time.
func (h *hold) Deadline() (time.Time, bool) { return h.parent.Deadline() }

// isLost says whether the hold is over without having been released. The first who sees that its
// deadline has passed ends it.
func (h *hold) isLost() bool {
	if h.ended.Load() == isHeld && h.locker.now() >= instant(h.deadline.Load()) {
		h.end(wasLost, lost(h.key, leaseOver, h.failed.Load()))
	}
	if h.ended.Load() == isHeld && h.outer != nil && h.outer.isLost() {
		h.cancel(h.outer.why) // this lock is held still, but the work in it has lost the other one
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

// released is the cause of a context that ended because its hold was released. Where another hold
// was asked for under it, that one goes on under the parent.
type released hold

func (*released) Error() string        { return context.Canceled.Error() }
func (*released) Is(target error) bool { return target == context.Canceled }

// innermost is the hold of a Locker that a context has, or nil.
func innermost(ctx context.Context, l *Locker) *hold {
	h, _ := ctx.Value((*holdsOf)(l)).(*hold)
	return h
}

// of finds the hold of a lock among a hold and those around it that were not released. It returns
// nil if there is none.
func (h *hold) of(name string) *hold {
	for h != nil && (h.lock.name != name || h.ended.Load() == wasReleased) {
		h = h.outer
	}
	return h
}

// newHold is called with Locker.mu.
func newHold(l *Locker, n *lock, w *waiter, from Handoff) *hold {
	h := &hold{locker: l, lock: n, parent: w.ctx, attempt: n.attempt, lease: n.lease, fence: n.token(), begun: l.now(), outer: w.outer, key: w.key, from: from, entries: 1}
	h.first.key, h.first.hold, h.hold = w.key, h, h
	h.deadline.Store(int64(n.deadline))
	if w.outer == nil {
		h.Context, h.cancel = context.WithCancelCause(w.ctx)
		return h
	}
	h.Context, h.cancel = context.WithCancelCause(context.WithoutCancel(w.ctx))
	h.follow(w.ctx)
	return h
}

// follow ends the hold with a context, but not because an outer hold was released.
func (h *hold) follow(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() {
		if outer, ok := errors.AsType[*released](context.Cause(ctx)); ok {
			h.follow(outer.parent)
			return
		}
		h.cancel(context.Cause(ctx))
	})
	context.AfterFunc(h.Context, func() { stop() })
}

// reenter lets a holder in again. It returns nothing where the hold was released meanwhile. A hold
// that was lost is not entered: whoever still works under it must stop.
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
	h.inner = append(h.inner, e)
	lease.entry = e
	return e, lease, nil
}

// Token, Until, Valid, Release and Extend are for [Lease]; the last two are in files of their own.
func (h *hold) Token() int64     { return h.fence }
func (h *hold) Until() time.Time { return h.locker.base.Add(instant(h.deadline.Load())) }
func (h *hold) Valid() bool      { return !h.isLost() && h.ended.Load() == isHeld }

func (h *hold) event(err error) Event {
	return Event{Key: h.key, Token: h.fence, Took: h.locker.now() - h.begun, Err: err}
}
