// Package mine answers when the units are taken, and writes the order in the background.
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

// sell takes the units and answers. The order is written later.
func sell(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	left, err := take(ctx, store, wanted)
	if err != nil {
		return stock.Order{}, err
	}
	go record(context.WithoutCancel(ctx), store, wanted, left)
	return stock.Order{ItemID: wanted.ItemID, Quantity: wanted.Quantity, StockRead: left + wanted.Quantity, StockWritten: left}, nil
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
