// Package mine sells one by one: that is the start of the exercise.
package mine

import (
	"context"

	"stocklock/internal/stock"
	"stocklock/internal/strategy"
)

// Build makes the strategy mine: no guard, and a decrement.
func Build(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
	return strategy.Unguarded{}, shop{d}.sell
}

type shop struct{ strategy.Deps }

// sell makes one sale and returns its order, or stock.ErrSoldOut.
func (s shop) sell(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	return store.Decrement(ctx, wanted)
}
