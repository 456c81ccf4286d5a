// Package mine takes the units and records the order in one transaction, and passes an unknown outcome on.
package mine

import (
	"context"

	"stocklock/internal/stock"
	"stocklock/internal/strategy"
)

// Build makes the strategy mine: no guard, and sell.
func Build(strategy.Deps) (strategy.Guard, strategy.Decrement) {
	return strategy.Unguarded{}, sell
}

// sell makes one sale and returns its order, stock.ErrSoldOut or stock.ErrUnknown.
func sell(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	var order stock.Order
	err := store.Transact(ctx, func(tx stock.Tx) error {
		left, ok, err := tx.Take(wanted.ItemID, wanted.Quantity)
		if err != nil {
			return err
		}
		if !ok {
			return stock.ErrSoldOut
		}
		order, err = tx.Record(wanted, left+wanted.Quantity, left)
		return err
	})
	if err != nil {
		return stock.Order{}, err
	}
	return order, nil
}
