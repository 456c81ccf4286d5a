package redislock

import (
	"context"
	"errors"
	"testing"
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
