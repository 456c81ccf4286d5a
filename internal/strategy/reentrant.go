package strategy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"stocklock/internal/redislock"
	"stocklock/internal/trace"
)

var reentrant = Strategy{
	Name:      "reentrant",
	Doc:       "the reference lock: reentrant, renewed by a watchdog, and its holder is told in time when it is lost",
	Source:    "internal/redislock",
	Guard:     "redislock: queue, direct hand-off, watchdog",
	Decrement: "read-then-write",
	Telling:   "failover",
	Properties: Exclusive | Recovers | AtomicLease | Renews | OwnerChecked | AtomicRelease | Reentrant | ClockFree |
		LossAware,
	build: func(d Deps) (guard, decrement) {
		// A commit outlives its request, and the lock must not be lost meanwhile.
		o := redislock.Options{Lease: d.Lease, Wait: d.Wait, Hooks: d.Hooks, Grace: max(d.Lease, writeTimeout)}
		return lockGuard{redislock.New(d.Redis, o)}, readThenWrite
	},
}

// lockGuard guards with a lock of package redislock.
type lockGuard struct{ redislock.Locking }

func (g lockGuard) Close() error { return g.Locking.Close(context.Background()) }

func (g lockGuard) Do(ctx context.Context, key string, fn func(context.Context, int64) error) error {
	held, lease, err := g.Acquire(ctx, key)
	if errors.Is(err, redislock.ErrNotAcquired) && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	if err != nil {
		return err
	}
	token := slog.Int64("token", lease.Token())
	trace.At(ctx, trace.Acquiring, token)
	trace.At(ctx, trace.Acquired, token)
	defer func() {
		trace.At(ctx, trace.Releasing, token)
		if err := lease.Release(); err != nil {
			slog.DebugContext(ctx, "release failed", "error", err)
		}
		trace.At(ctx, trace.Released, token)
	}()
	err = fn(held, lease.Token())
	if cause := context.Cause(held); errors.Is(err, context.Canceled) && errors.Is(cause, redislock.ErrLost) {
		return cause // what was cancelled was cancelled by the loss
	}
	return err
}
