package ladder

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/sale"
	"stocklock/internal/strategy"
)

// release releases a polled lock as the recipe does. It announces the point releasing where a fault
// would hurt most.
type release func(ctx context.Context) error

// polled makes a guard of a recipe that tries once: see [Poll].
type polled struct {
	strategy.Options
	// try takes the lock, or returns nil if another holder has it.
	try func(ctx context.Context, key string) (release, error)
}

// polledBy makes a guard of what takes a lock and what frees it, and announces the point acquiring
// between them. Each try has an owner that no other has.
func polledBy(d strategy.Deps, take func(ctx context.Context, key, owner string) (bool, error),
	free func(client redis.UniversalClient, key, owner string) release) strategy.Guard {
	return polled{Options: d.Options, try: func(ctx context.Context, key string) (release, error) {
		owner := ownerID()
		ok, err := take(ctx, key, owner)
		if err != nil || !ok {
			return nil, err
		}
		sale.At(ctx, sale.Acquiring)
		return free(d.Redis, key, owner), nil
	}}
}

func (p polled) Do(ctx context.Context, key string, fn func(context.Context, int64) error) error {
	var held release
	refused := sync.OnceFunc(func() { sale.At(ctx, sale.Waiting) })
	err := Poll(ctx, p.Options, func(uncancelled context.Context) (_ bool, err error) {
		if held, err = p.try(uncancelled, key); err != nil {
			return false, fmt.Errorf("acquire %s: %w", key, err)
		}
		if held == nil {
			refused()
		}
		return held != nil, nil
	})
	if err != nil {
		return err
	}
	sale.At(ctx, sale.Acquired)
	// It is released even if the request was cancelled meanwhile, within the client's timeouts. A release
	// that fails does not change the sale. It is noted, as in the recipes.
	defer func() {
		if err := held(context.WithoutCancel(ctx)); err != nil {
			slog.DebugContext(ctx, "release failed", "error", err)
		}
		sale.At(ctx, sale.Released)
	}()
	return fn(ctx, 0)
}

// Poll tries every Retry until a try reports true, or Wait is over. Neither that nor a client that
// disconnects cancels a try: its answer could be yes, and nobody would release the lock.
func Poll(ctx context.Context, o strategy.Options, try func(uncancelled context.Context) (done bool, err error)) error {
	waiting, cancel := context.WithTimeout(ctx, o.Wait)
	defer cancel()
	for {
		if done, err := try(context.WithoutCancel(ctx)); done || err != nil {
			return err
		}
		select {
		case <-time.After(o.Retry):
		case <-waiting.Done():
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return strategy.ErrBusy
		}
	}
}

// errNotOwner: another holder has the lock by now, or nobody. It was left alone.
var errNotOwner = errors.New("strategy: lock is no longer the caller's")

// ownerID returns a value that no other holder has.
func ownerID() string { return rand.Text() }
