// Package mine takes the units, then records the order: a shop that dies in between has taken units that nobody gets.
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

// sell takes the units, then records the order. It returns the order, or stock.ErrSoldOut.
func sell(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	left, err := take(ctx, store, wanted)
	if err != nil {
		return stock.Order{}, err
	}
	return record(ctx, store, wanted, left)
}

// take takes the units, and returns how many are left, or stock.ErrSoldOut.
func take(ctx context.Context, store *stock.Store, wanted stock.Sale) (left int64, err error) {
	err = store.Transact(ctx, func(tx stock.Tx) error {
		var ok bool
		if left, ok, err = tx.Take(wanted.ItemID, wanted.Quantity); err == nil && !ok {
			err = stock.ErrSoldOut
		}
		return err
	})
	return left, err
}

// record writes the order.
func record(ctx context.Context, store *stock.Store, wanted stock.Sale, left int64) (order stock.Order, err error) {
	err = store.Transact(ctx, func(tx stock.Tx) error {
		order, err = tx.Record(wanted, left+wanted.Quantity, left)
		return err
	})
	return order, err
}
