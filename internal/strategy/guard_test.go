package strategy_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"stocklock/internal/redislock"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
)

// lateLock is a lock whose wait is over, and whose caller gives up before it hears of that.
type lateLock struct {
	redislock.Locking
	giveUp context.CancelFunc
	err    error
}

func (l lateLock) Acquire(ctx context.Context, _ string) (context.Context, *redislock.Lease, error) {
	l.giveUp()
	return nil, nil, l.err
}

// TestAWaitThatIsOverIsBusy, also if the request is over by then. A wait that the request ended is not.
func TestAWaitThatIsOverIsBusy(t *testing.T) {
	for _, tt := range []struct {
		err  error
		busy bool
	}{
		{redislock.ErrNotAcquired, true},
		{fmt.Errorf("%w: %w", redislock.ErrNotAcquired, context.Canceled), false},
	} {
		ctx, giveUp := context.WithCancel(t.Context())
		err := strategy.LockGuard{Locking: lateLock{giveUp: giveUp, err: tt.err}}.Do(ctx, "k", nil)
		if errors.Is(err, strategy.ErrBusy) != tt.busy || !errors.Is(err, tt.err) {
			t.Errorf("Do = %v after %v, want busy %t", err, tt.err, tt.busy)
		}
	}
}

// TestALockOutlivesEachTransaction that is begun under it, also with a short lease.
func TestALockOutlivesEachTransaction(t *testing.T) {
	if got := strategy.LockOptions(strategy.Deps{Options: strategy.Options{Lease: time.Second}}).Grace; got < stock.RowTimeout {
		t.Errorf("a lock is renewed for %s after its request, want %s", got, stock.RowTimeout)
	}
}
