// Package mine is exercise 6: lose nothing and promise nothing, whichever answer is lost.
//
// This file takes the units in one transaction and records the order in a second one. If the second
// one fails, it restocks the units. The shop can die between the two, and the answer to either
// commit can be lost. An error of Transact does not say that nothing was written. Change sell so
// that every unit is either in stock or in an order, no sale is answered as sold without an order,
// and no customer gets two orders for one request. A customer whose order stands is answered as sold,
// even if the answer to the commit was lost.
//
// A sale that sets its OrderID (such as uuid.NewString()) has an order that can be looked up:
//
//	order, err := store.Order(ctx, wanted.OrderID) // or stock.ErrNotFound
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
	order, err := record(ctx, store, wanted, left)
	if err != nil {
		restock(ctx, store, wanted)
		return stock.Order{}, err
	}
	return order, nil
}

// take takes the units, and returns how many are left, or stock.ErrSoldOut.
func take(ctx context.Context, store *stock.Store, wanted stock.Sale) (left int64, err error) {
	err = store.Transact(ctx, func(tx stock.Tx) error {
		left, err = tx.Take(wanted.ItemID, wanted.Quantity)
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

// restock returns the units of a sale that failed.
func restock(ctx context.Context, store *stock.Store, wanted stock.Sale) {
	_ = store.Transact(ctx, func(tx stock.Tx) error {
		_, _, err := tx.Exec("UPDATE items SET stock = stock + ? WHERE id = ?", wanted.Quantity, wanted.ItemID)
		return err
	})
}
