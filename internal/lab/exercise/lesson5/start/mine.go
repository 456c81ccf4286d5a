// Package mine is exercise 5: let no overtaken holder overwrite a sale.
//
// The lock of this file is the reference lock. Its token grows with each holder, and is in
// wanted.Token. The write compares the token with the item's fence: and that alone is not enough.
// Change sell so that no overtaken holder writes over a sale, however long it was paused, and
// wherever.
//
// The store has what is needed, and a transaction of your own works, too:
//
//	store.RaiseFence(ctx, itemID, token)    // fence = token WHERE fence <= token, or stock.ErrFenced
//	store.WriteFenced(ctx, wanted, item)    // writes what follows from item WHERE fence = token
//	store.DecrementFenced(ctx, wanted)      // subtracts, and raises the fence
//	store.Transact(ctx, func(tx stock.Tx) error { ... })
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
	left, err := item.Take(wanted.Quantity)
	if err != nil {
		return stock.Order{}, err
	}
	var order stock.Order
	err = store.Transact(ctx, func(tx stock.Tx) error {
		matched, _, err := tx.Exec("UPDATE items SET stock = ?, fence = ? WHERE id = ? AND fence <= ?",
			left, wanted.Token, wanted.ItemID, wanted.Token)
		if err != nil {
			return err
		}
		if matched == 0 {
			return stock.ErrFenced
		}
		order, err = tx.Record(wanted, item.Stock, left)
		return err
	})
	return order, err
}
