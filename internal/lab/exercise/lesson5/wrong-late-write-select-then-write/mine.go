// Package mine looks at the fence with a SELECT and writes afterwards: the check and the write are two steps.
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
	if err := store.RaiseFence(ctx, wanted.ItemID, wanted.Token); err != nil {
		return stock.Order{}, err
	}
	item, err := store.Read(ctx, wanted.ItemID)
	if err != nil {
		return stock.Order{}, err
	}
	if _, err := item.Take(wanted.Quantity); err != nil {
		return stock.Order{}, err
	}
	again, err := store.Read(ctx, wanted.ItemID)
	if err != nil {
		return stock.Order{}, err
	}
	if again.Fence > wanted.Token {
		return stock.Order{}, stock.ErrFenced
	}
	return store.Write(ctx, wanted, item)
}
