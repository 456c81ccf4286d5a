// Package mine subtracts in one statement, which depends on no read.
package mine

import (
	"context"

	"stocklock/internal/stock"
	"stocklock/internal/strategy"
)

// Build makes the strategy mine: the reference lock, and sell.
func Build(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
	return strategy.Reference(d), sell
}

// sell makes one sale and returns its order, stock.ErrSoldOut or stock.ErrFenced.
func sell(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	return store.DecrementFenced(ctx, wanted)
}
