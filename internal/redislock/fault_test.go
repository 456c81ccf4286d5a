package redislock

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"
)

// lostWithin wants a held context to end with ErrLost before d is over.
func lostWithin(t *testing.T, held context.Context, d time.Duration) {
	t.Helper()
	select {
	case <-held.Done():
	case <-time.After(d):
		t.Fatalf("the hold did not end within %s", d)
	}
	if cause := context.Cause(held); !errors.Is(cause, ErrLost) {
		t.Errorf("the hold ended with %v, want ErrLost", cause)
	}
}

// TestASilentRedisCostsALease cuts a holder off without a reset. Its context ends while the lock still lives
// in Redis. Another process has the lock when that lease is over.
func TestASilentRedisCostsALease(t *testing.T) {
	t.Parallel()
	const length = 3 * time.Second
	w := newWire(t, shared.addr)
	client, _ := newClient(t, shared.addr)
	l, _ := newLockerAt(t, w.addr, Options{Lease: length})
	held, lease := acquire(t, l, within(t), t.Name())
	w.set(true)
	defer w.set(false)
	left := client.PTTL(t.Context(), Keys("", t.Name()).Lock).Val()
	end := time.Now().Add(left)
	if deadline := lease.Deadline(); !deadline.Before(end) {
		t.Errorf("the hold ends %s after the lock can end in Redis", deadline.Sub(end))
	}
	waiter, _ := newLocker(t, Options{Lease: length})
	got := asks(t, within(t), waiter, t.Name())
	lostWithin(t, held, 2*length)
	if err := lease.Release(); !errors.Is(err, ErrNotHeld) {
		t.Errorf("Release = %v, want ErrNotHeld", err)
	}
	release(t, soon(t, got, 2*length))
}

// TestUnconfirmedSubscriptionIsATimeout lets requests through and messages not: the caller must
// be able to tell it from a defect.
func TestUnconfirmedSubscriptionIsATimeout(t *testing.T) {
	t.Parallel()
	w := newWire(t, shared.addr)
	w.set(true)
	direct, _ := newClient(t, shared.addr)
	holder, _ := newLocker(t, Options{})
	_, lease := acquire(t, holder, within(t), t.Name())
	defer lease.Release()
	l := closing(t, New(apart{direct, defaults(t, w.addr, time.Second), over().Done()}, Options{Lease: time.Second}))
	_, _, err := l.Acquire(within(t), t.Name())
	if timeout, ok := errors.AsType[net.Error](err); !ok || !timeout.Timeout() || !strings.Contains(err.Error(), "nothing was done") {
		t.Errorf("Acquire = %v, want a timeout, and that nothing was done", err)
	}
}
