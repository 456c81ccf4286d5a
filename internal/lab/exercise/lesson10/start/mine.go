// Package mine is exercise 10: let no sale be made of an old stock.
//
// The lock and the fence of this file are right: it is an answer to exercise 5. Here the shop's reads
// outside of a transaction go to a replica, which has not applied the last sale. Change sell so that it
// sells no unit twice, however late the replica is. A holder that was overtaken must still not write over a
// sale.
//
// The store reads and writes at these servers:
//
//	store.Read(ctx, itemID)                 // the replica
//	store.RaiseFence(ctx, itemID, token)    // the primary: fence = token WHERE fence <= token, or stock.ErrFenced
//	store.WriteFenced(ctx, wanted, item)    // the primary: writes what follows from item WHERE fence = token
//	store.DecrementFenced(ctx, wanted)      // the primary: subtracts, and raises the fence
//	store.Transact(ctx, func(tx stock.Tx) error { ... }) // the primary, also for what tx.Query reads
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
	return store.WriteFenced(ctx, wanted, item)
}
