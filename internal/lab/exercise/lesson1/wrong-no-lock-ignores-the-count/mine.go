// Package mine writes only where the stock is as it was read, and does not look whether a row matched.
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

// sell makes one sale and returns its order, or stock.ErrSoldOut.
func sell(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	var order stock.Order
	err := store.Transact(ctx, func(tx stock.Tx) error {
		var left []int64
		if err := tx.Query(&left, "SELECT stock FROM items WHERE id = ?", wanted.ItemID); err != nil {
			return err
		}
		if len(left) == 0 {
			return stock.ErrNotFound
		}
		read, written := left[0], left[0]-wanted.Quantity
		if written < 0 {
			return stock.ErrSoldOut
		}
		if _, _, err := tx.Exec("UPDATE items SET stock = ? WHERE id = ? AND stock = ?", written, wanted.ItemID, read); err != nil {
			return err
		}
		var err error
		order, err = tx.Record(wanted, read, written)
		return err
	})
	return order, err
}
