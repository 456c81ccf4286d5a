// Package mine raises the fence, but after the read: the older holder can still write in between.
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
	item, err := store.Read(ctx, wanted.ItemID)
	if err != nil {
		return stock.Order{}, err
	}
	if _, err := item.Take(wanted.Quantity); err != nil {
		return stock.Order{}, err
	}
	if err := store.RaiseFence(ctx, wanted.ItemID, wanted.Token); err != nil {
		return stock.Order{}, err
	}
	return store.WriteFenced(ctx, wanted, item)
}
