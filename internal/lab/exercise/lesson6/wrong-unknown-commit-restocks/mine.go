// Package mine sells in one transaction, and restocks the units where the answer to its commit was lost.
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

// sell takes the units and records the order in one transaction, and restocks the units where
// that fails.
func sell(ctx context.Context, store *stock.Store, wanted stock.Sale) (order stock.Order, err error) {
	taken := false
	err = store.Transact(ctx, func(tx stock.Tx) error {
		left, ok, err := tx.Take(wanted.ItemID, wanted.Quantity)
		if err != nil {
			return err
		}
		if !ok {
			return stock.ErrSoldOut
		}
		order, err = tx.Record(wanted, left+wanted.Quantity, left)
		taken = err == nil
		return err
	})
	if err != nil && taken {
		restock(ctx, store, wanted)
	}
	return order, err
}

// restock returns the units of a sale that failed.
func restock(ctx context.Context, store *stock.Store, wanted stock.Sale) {
	_ = store.Transact(ctx, func(tx stock.Tx) error {
		_, _, err := tx.Exec("UPDATE items SET stock = stock + ? WHERE id = ?", wanted.Quantity, wanted.ItemID)
		return err
	})
}
