package strategy

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
)

// retryConflicts repeats a sale that lost against another transaction: see [AgainstConflicts]. Its
// first loss is the point waiting. A sale waits for a connection as long as others wait for a lock.
func retryConflicts(o Options, sell Decrement) Decrement {
	return func(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
		patient := stock.WithPatience(ctx, o.Wait)
		lost := func() { sale.At(ctx, sale.Waiting) }
		order, err := AgainstConflicts(ctx, o, lost, func() (stock.Order, error) { return sell(patient, store, wanted) })
		if errors.Is(err, stock.ErrNoConnection) {
			err = fmt.Errorf("%w: %w", ErrBusy, err)
		}
		return order, err
	}
}

// repeatConflicts repeats a sale under a lock that lost against another transaction, from its read
// on. That takes a server which ends transactions on its own, such as a node of a cluster.
func repeatConflicts(o Options, sell Decrement) Decrement {
	return func(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
		return AgainstConflicts(ctx, o, func() {}, func() (stock.Order, error) { return sell(ctx, store, wanted) })
	}
}

// AgainstConflicts tries again after losing against another transaction: the version changed, a
// deadlock was resolved, or the row stayed locked for too long. It gives up with stock.ErrConflict
// when Options.Wait is over. It calls lost after the first loss.
func AgainstConflicts[T any](ctx context.Context, o Options, lost func(), try func() (T, error)) (T, error) {
	once := sync.OnceFunc(lost)
	for giveUp := time.Now().Add(o.Wait); ; {
		made, err := try()
		if !errors.Is(err, stock.ErrConflict) {
			return made, err
		}
		if once(); time.Now().After(giveUp) {
			return made, err
		}
		select {
		case <-time.After(rand.N(o.Retry + 1)):
		case <-ctx.Done():
			var none T
			return none, context.Cause(ctx)
		}
	}
}
