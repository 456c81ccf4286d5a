package ladder

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"stocklock/internal/sale"
	"stocklock/internal/strategy"
)

// lease is one hold of a polled lock.
type lease interface {
	// release releases the lock as the recipe does. It announces the point releasing where a fault
	// would hurt most.
	release(ctx context.Context) error
}

// polled makes a guard of a recipe that tries once. It tries again every Retry until Wait is over.
type polled struct {
	strategy.Options
	// try takes the lock, or returns nil if another holder has it.
	try func(ctx context.Context, key string) (lease, error)
}

func (p polled) Do(ctx context.Context, key string, fn func(context.Context, int64) error) error {
	held, err := p.acquire(ctx, key)
	if err != nil {
		return err
	}
	sale.At(ctx, sale.Acquired)
	defer p.release(ctx, held)
	return fn(ctx, 0)
}

func (p polled) acquire(ctx context.Context, key string) (lease, error) {
	waiting, cancel := context.WithTimeout(ctx, p.Wait)
	defer cancel()
	for refused := false; ; {
		// Neither the end of the wait nor a client that disconnects cancels the try. Its answer
		// could be yes, and nobody would release the lock.
		l, err := p.try(context.WithoutCancel(ctx), key)
		if err != nil {
			return nil, fmt.Errorf("acquire %s: %w", key, err)
		}
		if l != nil {
			return l, nil
		}
		if !refused {
			refused = true
			sale.At(ctx, sale.Waiting)
		}
		select {
		case <-time.After(p.Retry):
		case <-waiting.Done():
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, strategy.ErrBusy
		}
	}
}

// release releases the lock, even if the request was cancelled meanwhile. It takes at most the
// client's timeouts. A release that fails does not change the sale. It is noted, as in the recipes.
func (p polled) release(ctx context.Context, held lease) {
	if err := held.release(context.WithoutCancel(ctx)); err != nil {
		slog.DebugContext(ctx, "release failed", "error", err)
	}
	sale.At(ctx, sale.Released)
}

// errNotOwner: another holder has the lock by now, or nobody. It was left alone.
var errNotOwner = errors.New("strategy: lock is no longer the caller's")

// ownerID returns a value that no other holder has.
func ownerID() string { return rand.Text() }
