package strategy

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"stocklock/internal/stock"
)

// retryConflicts sells again when the database chose another transaction: a
// version that moved, a deadlock, a row that stayed locked too long. It gives up
// with stock.ErrConflict when the time to wait is over.
func retryConflicts(o Options, sell Decrement) Decrement {
	return func(ctx context.Context, store *stock.Store, sale stock.Sale) (stock.Order, error) {
		for giveUp := time.Now().Add(o.Wait); ; {
			order, err := sell(ctx, store, sale)
			if !errors.Is(err, stock.ErrConflict) || time.Now().After(giveUp) {
				return order, err
			}
			select {
			case <-time.After(rand.N(o.Retry + 1)):
			case <-ctx.Done():
				return stock.Order{}, context.Cause(ctx)
			}
		}
	}
}
