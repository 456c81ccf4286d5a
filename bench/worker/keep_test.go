package worker

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"stocklock/bench/lock"
)

// TestKeptLocksAreReleasedAfterTheResult: whoever counts the requests does so when the result is there.
func TestKeptLocksAreReleasedAfterTheResult(t *testing.T) {
	var released atomic.Int64
	locker := lock.Locker{Lock: func(ctx, _ context.Context, _ string) (lock.Hold, error) {
		return lock.Hold{Context: ctx, Release: func(context.Context) error {
			released.Add(1)
			return nil
		}}, nil
	}}
	start := func() error { return nil }
	_, release, err := keep(t.Context(), start, locker, Order{Key: "k", Hold: 3, Lease: time.Millisecond, For: time.Millisecond})
	if err != nil || released.Load() != 0 {
		t.Fatalf("%d releases before the result, %v", released.Load(), err)
	}
	if err := release(); err != nil || released.Load() != 3 {
		t.Errorf("%d releases of 3, %v", released.Load(), err)
	}
}
