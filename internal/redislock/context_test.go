package redislock

import (
	"context"
	"errors"
	"fmt"
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
// scheduler has come to. All agree from then on.
func TestHeldComparesTheClock(t *testing.T) {
	contract(t, func(t *testing.T, k Kind) {
		lost := func(err error) bool { return errors.Is(err, ErrLost) }
		enters := func(l Locking, ctx context.Context, key string) bool {
			_, _, err := l.Acquire(ctx, key)
			return lost(err)
		}
		for name, sees := range map[string]func(l Locking, held context.Context, lease *Lease) bool{
			"Err":   func(_ Locking, held context.Context, _ *Lease) bool { return errors.Is(held.Err(), context.Canceled) },
			"Cause": func(_ Locking, held context.Context, _ *Lease) bool { return lost(context.Cause(held)) },
			"a child made then": func(_ Locking, held context.Context, _ *Lease) bool {
				child, cancel := context.WithCancel(held)
				defer cancel()
				return lost(context.Cause(child))
			},
			"Valid":    func(_ Locking, _ context.Context, lease *Lease) bool { return !lease.Valid() },
			"re-entry": func(l Locking, held context.Context, lease *Lease) bool { return enters(l, held, lease.Key()) },
			"re-entry without its end": func(l Locking, held context.Context, lease *Lease) bool {
				return enters(l, context.WithoutCancel(held), lease.Key())
			},
			"another key under it": func(l Locking, held context.Context, lease *Lease) bool { return enters(l, held, lease.Key()+"b") },
			"Release":              func(_ Locking, _ context.Context, lease *Lease) bool { return errors.Is(lease.Release(), ErrNotHeld) },
		} {
			l := k.new(t, Options{Lease: time.Minute})
			held, lease := acquire(t, l, t.Context(), t.Name()+name)
			if held.Err() != nil || !lease.Valid() {
				t.Fatal("it is not held")
			}
			lateBy(lease, time.Millisecond)
			if !sees(l, held, lease) {
				t.Errorf("%s does not see the loss", name)
			}
			if <-held.Done(); held.Err() == nil || !lost(context.Cause(held)) || lease.Valid() {
				t.Errorf("%s: Err = %v, Cause = %v, Valid = %v", name, held.Err(), context.Cause(held), lease.Valid())
			}
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
			free(t, l) // the attempt was cancelled
		}
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
		if <-again.Done(); !errors.Is(context.Cause(again), ErrLost) || inner.Valid() {
			t.Errorf("the re-entry goes on, or ended with %v", context.Cause(again))
		}
		if _, _, err := l.Acquire(detached, t.Name()); !errors.Is(err, ErrLost) {
			t.Errorf("a hold that was lost was entered: %v", err)
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
		<-heldC.Done() // the inner hold ends with the caller's context
		release(t, c)

		heldA, a = acquire(t, l, t.Context(), t.Name()+"a")
		heldB, b = acquire(t, l, heldA, t.Name()+"b")
		heldC, c = acquire(t, l, heldB, t.Name()+"c")
		release(t, b) // so that the inner one ends with the next one around that
		lateBy(a, time.Millisecond)
		_ = heldA.Err()
		if <-heldC.Done(); !errors.Is(context.Cause(heldC), ErrLost) {
			t.Errorf("the outermost lock is lost, and work under both has %v", context.Cause(heldC))
		}
		release(t, c)
	})
}

// TestAnOuterLockThatIsEnteredAgain keeps the inner ones: they are entered again under it, and their loss ends what is
// done under it.
func TestAnOuterLockThatIsEnteredAgain(t *testing.T) {
	withFake(t, func(t *testing.T, _ *fakeRedis, l *Locker) {
		heldA, a := acquire(t, l, t.Context(), "a")
		heldB, b := acquire(t, l, heldA, "b")
		again, twice := acquire(t, l, heldB, "a")
		if _, third, err := l.TryAcquire(again, "b"); err != nil || third.Token() != b.Token() || !l.Holds(again, "b") {
			t.Fatalf("the inner lock cannot be entered again: %v", err)
		}
		heldC, c := acquire(t, l, again, "c")
		release(t, twice)
		lateBy(b, time.Millisecond)
		if heldC.Err() == nil || !errors.Is(context.Cause(heldC), ErrLost) || heldA.Err() != nil {
			t.Errorf("the lock between is lost: %v, and the outer one: %v", context.Cause(heldC), heldA.Err())
		}
		<-heldC.Done()
		_, _ = c.Release(), a.Release()
	})
}

// TestTheLossOfAnOuterLock is seen by the first look at a context, however deep it is, and where that does not end with
// its caller.
func TestTheLossOfAnOuterLock(t *testing.T) {
	for _, looks := range []bool{true, false} {
		withFake(t, func(t *testing.T, _ *fakeRedis, l *Locker) {
			heldA, a := acquire(t, l, t.Context(), "a")
			heldB, _ := acquire(t, l, heldA, "b")
			heldC, _ := acquire(t, l, heldB, "c")
			detached, _ := acquire(t, l, context.WithoutCancel(heldC), "c")
			entered, _ := acquire(t, l, context.WithoutCancel(heldC), "b")
			lateBy(a, time.Millisecond)
			for _, held := range []context.Context{detached, entered, heldC} {
				if looks && held.Err() == nil {
					t.Error("a look finds that nothing is lost")
				} else if !looks {
					_ = heldA.Err()
					<-held.Done()
				}
				if !errors.Is(context.Cause(held), ErrLost) {
					t.Errorf("it has ended with %v", context.Cause(held))
				}
			}
			for key, ctx := range map[string]context.Context{"d": heldA, "e": context.WithoutCancel(heldA), "b": context.WithoutCancel(heldC), "c": context.WithoutCancel(detached)} {
				if _, _, err := l.Acquire(ctx, key); !errors.Is(err, ErrLost) || errors.Is(err, ErrNotAcquired) {
					t.Errorf("%s under a lock that is lost: %v, want ErrLost alone", key, err)
				}
			}
		})
	}
}

// TestAnEntryIntoAnOuterLock that does not end with its caller ends with the loss of an inner one, and not with its
// release. Neither hold keeps an entry that is over.
func TestAnEntryIntoAnOuterLock(t *testing.T) {
	withFake(t, func(t *testing.T, _ *fakeRedis, l *Locker) {
		heldA, a := acquire(t, l, t.Context(), "a")
		heldB, b := acquire(t, l, heldA, "b")
		_, over := acquire(t, l, context.WithoutCancel(heldB), "a")
		release(t, over)
		for _, h := range []*hold{a.hold, b.hold} {
			h.inner.Range(func(any, any) bool { t.Error("a hold keeps an entry that is over"); return true })
		}
		goesOn, entry := acquire(t, l, context.WithoutCancel(heldB), "a")
		release(t, b)
		if goesOn.Err() != nil {
			t.Errorf("the inner lock was released: %v", context.Cause(goesOn))
		}
		release(t, entry)
		heldB, b = acquire(t, l, heldA, "b")
		ends, _ := acquire(t, l, context.WithoutCancel(heldB), "a")
		lateBy(b, time.Millisecond)
		_, _ = heldB.Err(), b.Release() // which learns of the loss
		if <-ends.Done(); !errors.Is(context.Cause(ends), ErrLost) || heldA.Err() != nil {
			t.Errorf("the inner lock is lost: %v", context.Cause(ends))
		}
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
		want, _ := between.Deadline()
		if d, ok := heldB.Deadline(); !ok || !d.Equal(want) {
			t.Errorf("Deadline = %v, %v, want that of its parent", d, ok)
		}
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

// TestAnOuterContextForgetsHolds that were released, and a hold its entries: they can live for long.
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
		entered, again := acquire(t, l, ctx, "a")
		if release(t, again); entered.Err() == nil {
			t.Error("the context of an entry goes on after its release")
		}
		outer.hold.inner.Range(func(_, _ any) bool { t.Error("the hold has an entry that was released"); return true })
		release(t, outer)
	})
}

// TestACopyOfALeaseIsReleasedOnce: the copies of a Lease share its release. The second one must not
// free the lock that the next holder has by now.
func TestACopyOfALeaseIsReleasedOnce(t *testing.T) {
	withListening(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		_, first := acquire(t, l, t.Context(), "k")
		cp := *first
		one := waits(t, t.Context(), l, "k")
		two := waits(t, t.Context(), l, "k")
		release(t, first)
		second := <-one
		if err := cp.Release(); !errors.Is(err, ErrNotHeld) || cp.Valid() {
			t.Errorf("the copy's Release = %v, want ErrNotHeld; it is valid: %v", err, cp.Valid())
		}
		if last, err := first.hold.leave(0); last || !errors.Is(err, ErrNotHeld) {
			t.Errorf("a hold that has ended was left again: %v, %v", last, err)
		}
		if synctest.Wait(); len(two) > 0 || !second.Valid() {
			t.Error("a hold that has ended ended another one")
		}
		release(t, second)
		release(t, <-two)

		held, outer := acquire(t, l, t.Context(), "k")
		_, inner := acquire(t, l, held, "k")
		cp = *inner
		release(t, inner)
		if err := cp.Release(); !errors.Is(err, ErrNotHeld) || !outer.Valid() {
			t.Errorf("the copy of an inner lease: Release = %v, and the outer one is valid: %v", err, outer.Valid())
		}
		release(t, outer)
	})
}

// TestHandOverHandKeepsNothing: each lock is acquired under the held context of the last one,
// which is then released.
func TestHandOverHandKeepsNothing(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		type key struct{}
		root, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "root"))
		defer cancel()
		held, last := acquire(t, l, root, "0")
		for i := range 100 {
			next, lease := acquire(t, l, held, fmt.Sprint(i+1))
			release(t, last)
			held, last = next, lease
			synctest.Wait()
		}
		if h := last.hold; h.around() != nil || h.outer.Load() != nil {
			t.Error("the holds of earlier steps are kept")
		}
		if held.Value(key{}) != "root" {
			t.Error("the values of the first context are lost")
		}
		cancel()
		synctest.Wait()
		if !errors.Is(held.Err(), context.Canceled) {
			t.Errorf("after the end of the first context: %v", held.Err())
		}
		release(t, last)
	})
}
