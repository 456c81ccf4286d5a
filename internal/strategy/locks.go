package strategy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/redislock"
	"stocklock/internal/sale"
	"stocklock/internal/stock"
)

// Locks are what strategies with a lock in Redis work on. A copy without such strategies has none.
type Locks struct {
	// Redis is never nil, also where the strategy is WithoutRedis: it connects when it is used.
	Redis redis.UniversalClient
	// Quorum has independent servers, for the strategies that need them.
	Quorum []redis.UniversalClient
	// Hooks are called for locks of package redislock.
	Hooks redislock.Hooks
}

// check returns an error if a strategy lacks servers.
func (l Locks) check(s Strategy) error {
	if l.Redis == nil {
		return errors.New("--redis (SHOP_REDIS): a shop has a client, also where its strategy uses none")
	}
	if s.NeedsQuorum && len(l.Quorum) == 0 {
		return fmt.Errorf("strategy %s needs several independent Redis servers: set --redis-quorum (SHOP_REDIS_QUORUM)", s.Name)
	}
	return nil
}

// LockGuard is a guard by a lock of package redislock.
type LockGuard struct{ redislock.Locking }

// Reference returns a guard by the reference lock: queue, direct hand-off, watchdog.
func Reference(d Deps) LockGuard { return LockGuard{redislock.New(d.Redis, LockOptions(d))} }

// LockOptions returns the options of a lock. Its hooks also announce the point waiting.
func LockOptions(d Deps) redislock.Options {
	hooks := d.Hooks
	hooks.Waiting = func(ctx context.Context, e redislock.Event) {
		if d.Hooks.Waiting != nil {
			d.Hooks.Waiting(ctx, e)
		}
		sale.At(ctx, sale.Waiting)
	}
	// A commit outlives its request, and the lock must not be lost meanwhile.
	return redislock.Options{Lease: d.Lease, Wait: d.Wait, Hooks: hooks, Grace: max(d.Lease, stock.RowTimeout)}
}

// Hold takes the lock. Its holder calls release once. The context held and the token are as of
// [Guard.Do].
func (g LockGuard) Hold(ctx context.Context, key string) (held context.Context, token int64, release func(), err error) {
	held, lease, err := g.Acquire(ctx, key)
	if errors.Is(err, redislock.ErrNotAcquired) && (ctx.Err() == nil || !errors.Is(err, ctx.Err())) {
		return nil, 0, nil, fmt.Errorf("%w: %w", ErrBusy, err)
	}
	if err != nil {
		return nil, 0, nil, err
	}
	fact := slog.Int64("token", lease.Token())
	sale.At(ctx, sale.Acquiring, fact)
	sale.At(ctx, sale.Acquired, fact)
	return held, lease.Token(), func() {
		sale.At(ctx, sale.Releasing, fact)
		if err := lease.Release(); err != nil {
			slog.DebugContext(ctx, "release failed", "error", err)
		}
		sale.At(ctx, sale.Released, fact)
	}, nil
}

// Do runs fn while the lock is held.
func (g LockGuard) Do(ctx context.Context, key string, fn func(context.Context, int64) error) error {
	held, token, release, err := g.Hold(ctx, key)
	if err != nil {
		return err
	}
	defer release()
	err = fn(held, token)
	if cause := context.Cause(held); errors.Is(err, context.Canceled) && errors.Is(cause, redislock.ErrLost) {
		return cause // the loss cancelled what was under way
	}
	return err
}
