package strategy_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"stocklock/internal/redislock"
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
