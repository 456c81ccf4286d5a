package redislock

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// lateBy moves a hold's deadline into the past, as if the loop had not come to it: a process that
// was stopped, or has no processor to run it.
func lateBy(lease *Lease, d time.Duration) {
	h := lease.hold
	h.deadline.Store(int64(h.locker.now() - d))
}

// TestHeldComparesTheClock: nobody who looks sees "held" after the deadline, whatever the
// scheduler has come to.
func TestHeldComparesTheClock(t *testing.T) {
	contract(t, func(t *testing.T, k Kind) {
		for name, look := range map[string]func(t *testing.T, l Locking, held context.Context, lease *Lease){
			"Err": func(t *testing.T, _ Locking, held context.Context, _ *Lease) {
				if err := held.Err(); !errors.Is(err, context.Canceled) {
					t.Errorf("Err = %v", err)
				}
			},
			"Cause": func(t *testing.T, _ Locking, held context.Context, _ *Lease) {
				if err := context.Cause(held); !errors.Is(err, ErrLost) {
					t.Errorf("Cause = %v", err)
				}
			},
			"a child made then": func(t *testing.T, _ Locking, held context.Context, _ *Lease) {
				child, cancel := context.WithCancel(held)
				defer cancel()
				if err := context.Cause(child); !errors.Is(err, ErrLost) {
					t.Errorf("Cause of the child = %v", err)
				}
			},
			"Valid": func(t *testing.T, _ Locking, _ context.Context, lease *Lease) {
				if lease.Valid() {
					t.Error("it is valid")
				}
			},
			"re-entry": func(t *testing.T, l Locking, held context.Context, lease *Lease) {
				if _, _, err := l.Acquire(held, lease.Key()); !errors.Is(err, ErrLost) {
					t.Errorf("re-entry = %v", err)
				}
			},
			"re-entry without its end": func(t *testing.T, l Locking, held context.Context, lease *Lease) {
				if _, _, err := l.Acquire(context.WithoutCancel(held), lease.Key()); !errors.Is(err, ErrLost) {
					t.Errorf("re-entry = %v", err)
				}
			},
			"another key under it": func(t *testing.T, l Locking, held context.Context, _ *Lease) {
				if _, _, err := l.Acquire(held, t.Name()+"b"); !errors.Is(err, ErrLost) {
					t.Errorf("Acquire under it = %v", err)
				}
			},
			"Release": func(t *testing.T, _ Locking, _ context.Context, lease *Lease) {
				if err := lease.Release(); !errors.Is(err, ErrNotHeld) {
					t.Errorf("Release = %v", err)
				}
			},
		} {
			t.Run(name, func(t *testing.T) {
				l := k.new(t, Options{Lease: time.Minute})
				held, lease := acquire(t, l, t.Context(), t.Name())
				if held.Err() != nil || !lease.Valid() {
					t.Fatal("it is not held")
				}
				lateBy(lease, time.Millisecond)
				look(t, l, held, lease)
				// All agree from then on.
				select {
				case <-held.Done():
				default:
					t.Error("Done is not closed")
				}
				if held.Err() == nil || !errors.Is(context.Cause(held), ErrLost) || lease.Valid() {
					t.Errorf("Err = %v, Cause = %v, Valid = %v", held.Err(), context.Cause(held), lease.Valid())
				}
			})
		}
	})
}

// TestAHoldIsOverAtItsDeadline, to the nanosecond.
func TestAHoldIsOverAtItsDeadline(t *testing.T) {
	withFake(t, func(t *testing.T, _ *fakeRedis, l *Locker) {
		_, lease := acquire(t, l, t.Context(), "k")
		for _, left := range []time.Duration{time.Nanosecond, 0} {
			if lateBy(lease, -left); lease.Valid() != (left > 0) {
				t.Errorf("with %s left, it is valid: %v", left, lease.Valid())
			}
		}
	})
}

// TestARenewalRevivesNothing: who was answered that the hold is over must not be overtaken by the
// answer to a renewal.
func TestARenewalRevivesNothing(t *testing.T) {
	contract(t, func(t *testing.T, k Kind) {
		lost := make(chan Event, 1)
		l := k.new(t, Options{Lease: time.Minute, Hooks: Hooks{Lost: func(_ context.Context, e Event) { lost <- e }}})
		for _, seen := range []bool{true, false} { // by somebody who looks, before the answer comes
			held, lease := acquire(t, l, t.Context(), t.Name())
			h := lease.hold
			h.locker.mu.Lock()
			deadline := h.deadline.Load()
			lateBy(lease, time.Millisecond)
			if seen {
				_ = held.Err()
				h.deadline.Store(deadline)
			} else {
				h.lock.deadline = instant(h.deadline.Load())
			}
			h.locker.unlock()
			renew(lease)
			if e := <-lost; !errors.Is(e.Err, ErrLost) || lease.Valid() {
				t.Errorf("the hook was called with %v; valid: %v", e.Err, lease.Valid())
			}
			_, next := acquire(t, l, within(t), t.Name()) // the attempt was cancelled
			release(t, next)
		}
	})
}

func TestDeadlineIsTheParents(t *testing.T) {
	contract(t, func(t *testing.T, k Kind) {
		l := k.new(t, Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		held, lease := acquire(t, l, ctx, t.Name())
		inner, second := acquire(t, l, held, t.Name()+"b")
		want, _ := ctx.Deadline()
		for _, c := range []context.Context{held, inner} {
			if d, ok := c.Deadline(); !ok || !d.Equal(want) {
				t.Errorf("Deadline = %v, %v, want the parent's", d, ok)
			}
		}
		release(t, second)
		release(t, lease)
	})
}

// TestReentryWithoutCancel: it does not end with the caller's context, and ends with the hold.
func TestReentryWithoutCancel(t *testing.T) {
	contract(t, func(t *testing.T, k Kind) {
		l := k.new(t, Options{Lease: time.Minute})
		ctx, cancel := context.WithCancel(t.Context())
		held, outer := acquire(t, l, ctx, t.Name())
		detached := context.WithoutCancel(held)
		again, inner := acquire(t, l, detached, t.Name())
		cancel()
		<-held.Done()
		if again.Err() != nil {
			t.Errorf("a re-entry without the caller's cancellation ended with it: %v", context.Cause(again))
		}
		k.count(t, t.Name(), true)
		if renew(outer) {
			t.Error("a lock that is gone was renewed")
		}
		lostWithin(t, again, 5*time.Second)
		if again.Err() == nil || inner.Valid() {
			t.Error("the re-entry goes on")
		}
		if _, _, err := l.Acquire(detached, t.Name()); !errors.Is(err, ErrLost) {
			t.Errorf("a hold that was lost was entered: %v", err)
		}

		held, outer = acquire(t, l, t.Context(), t.Name())
		detached = context.WithoutCancel(held)
		_, inner = acquire(t, l, detached, t.Name())
		lateBy(outer, time.Millisecond)
		if inner.Valid() {
			t.Error("the re-entry is valid after the deadline")
		}

		held, outer = acquire(t, l, t.Context(), t.Name()+"b")
		release(t, outer)
		_, fresh := acquire(t, l, context.WithoutCancel(held), t.Name()+"b")
		if fresh.hold == outer.hold {
			t.Error("after the release, the hold was entered again")
		}
		release(t, fresh)
	})
}

// TestHoldsEndEachOnItsOwn: releasing an outer lock leaves the inner one; losing it, or the end of
// the caller's context, does not.
func TestHoldsEndEachOnItsOwn(t *testing.T) {
	contract(t, func(t *testing.T, k Kind) {
		l := k.new(t, Options{Lease: time.Minute})
		ctx, cancel := context.WithCancel(t.Context())
		heldA, a := acquire(t, l, ctx, t.Name()+"a")
		heldB, b := acquire(t, l, heldA, t.Name()+"b")
		heldC, c := acquire(t, l, heldB, t.Name()+"c")
		release(t, a)
		time.Sleep(20 * time.Millisecond)
		if heldA.Err() == nil || heldB.Err() != nil || heldC.Err() != nil || !b.Valid() || !c.Valid() {
			t.Errorf("after the release of the outer lock: %v, %v, %v", heldA.Err(), heldB.Err(), heldC.Err())
		}
		release(t, b)
		cancel()
		select {
		case <-heldC.Done():
		case <-time.After(5 * time.Second):
			t.Error("the inner hold does not end with the caller's context")
		}
		release(t, c)

		heldA, a = acquire(t, l, t.Context(), t.Name()+"a")
		heldB, b = acquire(t, l, heldA, t.Name()+"b")
		lateBy(a, time.Millisecond)
		if !errors.Is(context.Cause(heldB), ErrLost) && heldB.Err() == nil {
			t.Error("work under both locks goes on although the outer one is lost")
		}
		if !errors.Is(context.Cause(heldB), ErrLost) {
			t.Errorf("Cause = %v, want ErrLost", context.Cause(heldB))
		}
		release(t, b)
	})
}

// TestAnInnerHoldKeepsItsOwnDeadline: that of a context between two locks, also when the outer lock is
// released, which ends that context.
func TestAnInnerHoldKeepsItsOwnDeadline(t *testing.T) {
	withFake(t, func(t *testing.T, _ *fakeRedis, l *Locker) {
		heldA, a := acquire(t, l, t.Context(), "a")
		between, cancel := context.WithTimeout(heldA, time.Second)
		defer cancel()
		heldB, b := acquire(t, l, between, "b")
		release(t, a)
		synctest.Wait()
		if heldB.Err() != nil {
			t.Errorf("the inner hold ended with the outer one: %v", context.Cause(heldB))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if !errors.Is(context.Cause(heldB), context.DeadlineExceeded) {
			t.Errorf("at its deadline the inner hold has %v, want that it is over", context.Cause(heldB))
		}
		time.Sleep(3 * fakeLease)
		if b.Valid() {
			t.Error("it is renewed for longer than its grace")
		}
	})
}

// TestReentriesAreForgotten: a hold that is entered again and again does not grow.
func TestReentriesAreForgotten(t *testing.T) {
	withFake(t, func(t *testing.T, _ *fakeRedis, l *Locker) {
		held, lease := acquire(t, l, t.Context(), "k")
		for range 10 {
			child, cancel := context.WithCancel(held)
			_, again := acquire(t, l, child, "k")
			release(t, again)
			cancel()
		}
		lease.hold.inner.Range(func(_, _ any) bool {
			t.Error("the hold has an entry that was released")
			return true
		})
		release(t, lease)
	})
}

// watched is a context that counts who wants to hear of its end.
type watched struct {
	context.Context
	done    chan struct{}
	waiting atomic.Int64
}

func (c *watched) Done() <-chan struct{} { return c.done }

func (c *watched) AfterFunc(func()) func() bool {
	c.waiting.Add(1)
	return func() bool { c.waiting.Add(-1); return true }
}

// TestAnOuterContextForgetsHolds that were released: it can live for long.
func TestAnOuterContextForgetsHolds(t *testing.T) {
	withFake(t, func(t *testing.T, _ *fakeRedis, l *Locker) {
		held, outer := acquire(t, l, t.Context(), "a")
		ctx := &watched{Context: held, done: make(chan struct{})}
		_, inner := acquire(t, l, ctx, "b")
		if n := ctx.waiting.Load(); n == 0 {
			t.Error("the inner hold does not end with its context")
		}
		release(t, inner)
		synctest.Wait()
		if n := ctx.waiting.Load(); n != 0 {
			t.Errorf("%d functions are left of a hold that was released", n)
		}
		release(t, outer)
	})
}
