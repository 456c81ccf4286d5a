package strategy

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"stocklock/internal/stock"
)

// retryConflicts repeats a sale that lost against another transaction: see [againstConflicts]. A
// sale waits for a connection as long as others wait for a lock.
func retryConflicts(o Options, sell Decrement) Decrement {
	return func(ctx context.Context, store *stock.Store, sale stock.Sale) (stock.Order, error) {
		patient := stock.WithPatience(ctx, time.Now().Add(o.Wait))
		order, err := againstConflicts(ctx, o, func() (stock.Order, error) { return sell(patient, store, sale) })
		if errors.Is(err, stock.ErrNoConnection) {
			err = fmt.Errorf("%w: %w", ErrBusy, err)
		}
		return order, err
	}
}

// againstConflicts tries again after losing against another transaction: the version changed, a
// deadlock was resolved, or the row stayed locked for too long. It gives up with stock.ErrConflict
// when Options.Wait is over.
func againstConflicts[T any](ctx context.Context, o Options, try func() (T, error)) (T, error) {
	for giveUp := time.Now().Add(o.Wait); ; {
		made, err := try()
		if !errors.Is(err, stock.ErrConflict) || time.Now().After(giveUp) {
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
