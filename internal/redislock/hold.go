package redislock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// hold is one holder's time with the lock, and the context of that time.
type hold struct {
	context.Context // ends with the hold
	cancel          context.CancelCauseFunc
	locker          *Locker
	lock            *lock
	parent          context.Context // that Acquire was called with
	attempt         uint64
	lease           time.Duration
	fence           int64
	begun           instant
	outer           *hold // the innermost in whose context this one was asked for; or nil
	first           entry

	deadline atomic.Int64 // an instant
	failed   atomic.Pointer[error]
	ended    atomic.Int32 // a way to end
	once     sync.Once    // of the end
	why      error        // once it is lost

	// Locker.mu guards these.
	entries int      // leases that were not released yet
	inner   []*inner // entries with a context of their own
	graced  bool     // its context has ended, and Grace has begun
}

// Ways to end.
const (
	isHeld = iota
	wasReleased
	wasLost
)

// holdsOf, as a pointer, is the key under which a context has its innermost hold of a Locker.
type holdsOf Locker

func (h *hold) Value(key any) any {
	if key == (*holdsOf)(h.locker) {
		return h
	}
	h.isLost() // context.Cause asks for a value, too
	return h.Context.Value(key)
}

func (h *hold) String() string { return fmt.Sprintf("%v.Holding(%q)", h.parent, h.first.key) }

// Deadline is the parent's: that of the lock is put off all the time.
func (h *hold) Deadline() (time.Time, bool) { return h.parent.Deadline() }

// Err looks at the clock, and not at what the scheduler has come to.
func (h *hold) Err() error {
	h.isLost()
	return h.Context.Err()
}

// isLost says whether the hold is over without having been released. The first who sees that its
// deadline has passed ends it.
func (h *hold) isLost() bool {
	if h.ended.Load() == isHeld && h.locker.now() >= instant(h.deadline.Load()) {
		h.end(wasLost, lost(h.first.key, "its lease is over", h.failure()))
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

// failure is why the last renewal failed, or nil.
func (h *hold) failure() error {
	if err := h.failed.Load(); err != nil {
		return *err
	}
	return nil
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
func newHold(l *Locker, n *lock, w *waiter) *hold {
	h := &hold{locker: l, lock: n, parent: w.ctx, attempt: n.attempt, lease: n.lease, fence: n.token(), begun: l.now(), outer: w.outer, entries: 1}
	h.first = entry{hold: h, key: w.key}
	h.first.lease.hold = &h.first
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

// inner is the context of an entry that was asked for with one that does not end with the hold,
// such as one of context.WithoutCancel.
type inner struct {
	context.Context
	cancel context.CancelCauseFunc
	hold   *hold
}

func (i *inner) Err() error {
	if i.hold.isLost() {
		i.cancel(i.hold.why)
	}
	return i.Context.Err()
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
	e := &entry{hold: h, key: key}
	e.lease.hold = e
	if ctx.Done() == h.Done() {
		return ctx, &e.lease, nil
	}
	e.inner = &inner{hold: h}
	e.inner.Context, e.inner.cancel = context.WithCancelCause(ctx)
	h.inner = append(h.inner, e.inner)
	return e.inner, &e.lease, nil
}

func (h *hold) until() time.Time { return h.locker.base.Add(instant(h.deadline.Load())) }
func (h *hold) valid() bool      { return !h.isLost() && h.ended.Load() == isHeld }

func (h *hold) event(err error) Event {
	return Event{Key: h.first.key, Token: h.fence, Took: h.locker.now() - h.begun, Err: err}
}
