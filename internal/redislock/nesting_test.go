package redislock

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
)

// TestReentryThroughAnotherKeysHold enters a lock again under the held context of a second one,
// which is a child of the first one's.
func TestReentryThroughAnotherKeysHold(t *testing.T) {
	l, count := newLocker(t, Options{})
	other, _ := newLocker(t, Options{})
	outer, outerLease := acquire(t, l, within(t), t.Name()+"a")
	inner, innerLease := acquire(t, l, outer, t.Name()+"b")
	type key struct{}
	below := context.WithValue(inner, key{}, 1)

	before := count.n.Load()
	for _, lease := range []*Lease{outerLease, innerLease} {
		_, again := acquire(t, l, below, lease.Key())
		if again.Token() != lease.Token() {
			t.Errorf("%s: token %d inside, %d outside, want the same", lease.Key(), again.Token(), lease.Token())
		}
		release(t, again)
	}
	if n := count.n.Load() - before; n != 0 {
		t.Errorf("re-entry sent %d requests, want none", n)
	}
	// Holds of one Locker are no holds of another one.
	if _, _, err := other.TryAcquire(below, t.Name()+"a"); !errors.Is(err, ErrNotAcquired) {
		t.Errorf("another Locker entered: %v", err)
	}
	release(t, innerLease)
	if outer.Err() != nil || inner.Err() == nil {
		t.Errorf("after the inner release, outer ended: %v, inner ended: %v", outer.Err(), inner.Err())
	}
	if _, _, err := l.Acquire(below, t.Name()+"b"); !errors.Is(err, ErrNotAcquired) || !errors.Is(err, context.Canceled) {
		t.Errorf("a lock was acquired with a context that has ended: %v", err)
	}
	release(t, outerLease)
}

// TestACopyOfALeaseIsReleasedOnce: the copies of a Lease share its release. The second one must not
// free the lock that the next holder has by now.
func TestACopyOfALeaseIsReleasedOnce(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		listening(l)
		_, first := acquire(t, l, t.Context(), "k")
		cp := *first
		one := asks(t, t.Context(), l, "k")
		synctest.Wait()
		two := asks(t, t.Context(), l, "k")
		synctest.Wait()
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

// TestHandOverHandCostsTheSameAtEachStep: each lock is acquired under the held context of the last one,
// which is then released.
func TestHandOverHandCostsTheSameAtEachStep(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		type key struct{}
		root, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "root"))
		defer cancel()
		held, last := acquire(t, l, root, "0")
		var allocations []uint64
		const steps = 1000
		for i := range steps {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			next, lease := acquire(t, l, held, fmt.Sprint(i+1))
			release(t, last)
			held, last = next, lease
			synctest.Wait()
			runtime.ReadMemStats(&after)
			allocations = append(allocations, after.Mallocs-before.Mallocs)
		}
		if first, end := slices.Max(allocations[:20]), slices.Max(allocations[steps-20:]); end > 2*first {
			t.Errorf("a step takes %d allocations after %d steps, and %d at first", end, steps, first)
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

		// A hold whose outer one was released ends with the next one around that.
		a, aLease := acquire(t, l, t.Context(), "a")
		b, bLease := acquire(t, l, a, "b")
		c, cLease := acquire(t, l, b, "c")
		release(t, bLease)
		synctest.Wait()
		if c.Err() != nil {
			t.Errorf("the inner hold ended with %v", context.Cause(c))
		}
		aLease.hold.end(ErrLost)
		<-c.Done()
		if !errors.Is(context.Cause(c), ErrLost) {
			t.Errorf("after the loss of the outermost: %v", context.Cause(c))
		}
		release(t, cLease)
		_ = aLease.Release()
	})
}
