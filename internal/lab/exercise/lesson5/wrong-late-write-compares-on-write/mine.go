// Package mine compares on the write alone: that is the start of the exercise. The older holder writes first,
// after the newer one has read.
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
