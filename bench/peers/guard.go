package peers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"stocklock/internal/redislock"
	"stocklock/internal/sale"
	"stocklock/internal/strategy"
)

// hold is a lock that a library has given.
type hold struct {
	ctx     context.Context // of the section; ends when the library says that the lock is lost
	token   int64           // 0 without one
	release func(context.Context) error
}

// library is a library's lock. Its lock function waits until waiting ends, and returns errTaken where
// the lock was not free until then. The hold works under ctx.
type library struct {
	lock  func(ctx, waiting context.Context, key string) (hold, error)
	close func() error // nil for nothing
}

var errTaken = errors.New("peers: the lock was not free in time")

// guard is the guard of every library: the same points, the same wait.
type guard struct {
	library
	wait time.Duration
}

// Do runs fn while the library's lock is held.
func (g guard) Do(ctx context.Context, key string, fn func(context.Context, int64) error) error {
	waiting, cancel := context.WithTimeout(ctx, g.wait)
	held, err := g.lock(ctx, waiting, key)
	cancel()
	switch {
	case errors.Is(err, errTaken) && ctx.Err() == nil:
		return strategy.ErrBusy
	case err != nil:
		return fmt.Errorf("acquire %s: %w", key, err)
	}
	sale.At(ctx, sale.Acquiring)
	sale.At(ctx, sale.Acquired, slog.Int64("token", held.token))
	defer func() {
		sale.At(ctx, sale.Releasing)
		// A client that has gone away does not keep the lock from being released.
		if err := held.release(context.WithoutCancel(ctx)); err != nil {
			slog.DebugContext(ctx, "release failed", "error", err)
		}
		sale.At(ctx, sale.Released)
	}()
	err = fn(held.ctx, held.token)
	if err != nil && held.ctx.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", redislock.ErrLost, err)
	}
	return err
}

// Close closes the library's own client.
func (g guard) Close() error {
	if g.close == nil {
		return nil
	}
	return g.close()
}
