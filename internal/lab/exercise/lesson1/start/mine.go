// Package mine is exercise 1: sell without a lock, and lose no update.
//
// This file sells as the strategy none does. Change Build or sell so that MySQL alone keeps two
// sales apart, and no customer is turned away while there are units. A sale that lost against another one
// may be made again, from its read on. Several ways are right. Redis is not needed for any of them.
//
// Store.Transact runs a function in a transaction. Its Tx has Query, Exec and Record:
//
//	var left []int64
//	err := tx.Query(&left, "SELECT stock FROM items WHERE id = ?", wanted.ItemID)
//	matched, _, err := tx.Exec("UPDATE items SET stock = ? WHERE id = ?", 7, wanted.ItemID)
//	order, err := tx.Record(wanted, 8, 7) // the order, with the stock before and after
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
		if _, _, err := tx.Exec("UPDATE items SET stock = ? WHERE id = ?", written, wanted.ItemID); err != nil {
			return err
		}
		var err error
		order, err = tx.Record(wanted, read, written)
		return err
	})
	return order, err
}
