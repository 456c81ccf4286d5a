// Package mine is exercise 7: at most half a commit for each sale.
//
// This file sells as conditional does: one transaction, and so one commit, for each sale. A commit
// waits for the disk. Have the sales that wait share one: at most 0.5 commits for each sale, and
// still no sale is answered before its order is committed, and nobody is answered as sold out while
// there are units.
//
//	store.DecrementBatch(ctx, itemID, sales) // sells to all that fit, in one transaction
//
// Its outcomes have the order of each sale, or its error. Several items can be sold at the same
// time.
//
// Send every request with ctx, or with context.WithoutCancel(ctx): the check holds it.
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
