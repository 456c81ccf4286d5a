package redislock

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
)

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
