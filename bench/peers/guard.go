package peers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"stocklock/bench/lock"
	"stocklock/internal/redislock"
	"stocklock/internal/sale"
	"stocklock/internal/strategy"
)

// guard is the guard of every library: the same points, the same wait.
type guard struct {
	lock.Locker
	err         error // why there is no Locker
	wait, lease time.Duration
	renews      bool // that the caller extends its holds
}

// guardOf opens a library's lock for a shop, with its lease and its servers.
func guardOf(l lock.Lock, d strategy.Deps, c lock.Config) guard {
	c.Lease, c.Redis = d.Lease, []redis.UniversalClient{d.Redis}
	if l.Quorum > 0 {
		c.Redis = d.Quorum
	}
	locker, err := l.Open(c)
	return guard{Locker: locker, err: err, wait: d.Wait, lease: d.Lease}
}

// Do runs fn while the library's lock is held.
func (g guard) Do(ctx context.Context, key string, fn func(context.Context, int64) error) error {
	if g.err != nil {
		return g.err
	}
	asking := lock.WithRefusal(ctx, func() { sale.At(ctx, sale.Waiting) })
	waiting, cancel := context.WithTimeout(asking, g.wait)
	held, err := g.Lock(asking, waiting, key)
	cancel()
	switch {
	case errors.Is(err, lock.ErrTaken) && ctx.Err() == nil:
		return strategy.ErrBusy
	case err != nil:
		return fmt.Errorf("acquire %s: %w", key, err)
	}
	if g.renews {
		held = lock.Renewed(held, g.lease)
	}
	sale.At(ctx, sale.Acquiring)
	sale.At(ctx, sale.Acquired, slog.Int64("token", held.Token))
	defer func() {
		sale.At(ctx, sale.Releasing)
		// A client that has gone away does not keep the lock from being released.
		if err := held.Release(context.WithoutCancel(ctx)); err != nil {
			slog.DebugContext(ctx, "release failed", "error", err)
		}
		sale.At(ctx, sale.Released)
	}()
	err = fn(held.Context, held.Token)
	if err != nil && held.Context.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", redislock.ErrLost, err)
	}
	return err
}

// Close closes the library's own client.
func (g guard) Close(context.Context) error {
	if g.Locker.Close == nil {
		return nil
	}
	return g.Locker.Close()
}
