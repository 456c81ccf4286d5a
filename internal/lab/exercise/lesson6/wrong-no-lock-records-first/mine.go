// Package mine records the order, then takes the units: a shop that dies in between has promised what it did not take.
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

// sell records the order, then takes the units. It returns the order, or stock.ErrSoldOut.
func sell(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	item, err := store.Read(ctx, wanted.ItemID)
	if err != nil {
		return stock.Order{}, err
	}
	left, err := item.Take(wanted.Quantity)
	if err != nil {
		return stock.Order{}, err
	}
	order, err := record(ctx, store, wanted, left)
	if err != nil {
		return stock.Order{}, err
	}
	return order, take(ctx, store, wanted)
}

// record writes the order.
func record(ctx context.Context, store *stock.Store, wanted stock.Sale, left int64) (order stock.Order, err error) {
	err = store.Transact(ctx, func(tx stock.Tx) error {
		order, err = tx.Record(wanted, left+wanted.Quantity, left)
		return err
	})
	return order, err
}

// take takes the units.
func take(ctx context.Context, store *stock.Store, wanted stock.Sale) error {
	return store.Transact(ctx, func(tx stock.Tx) error {
		_, ok, err := tx.Take(wanted.ItemID, wanted.Quantity)
		if err == nil && !ok {
			err = stock.ErrSoldOut
		}
		return err
	})
}
