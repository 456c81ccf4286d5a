// Package mine tries again after every error: one whose answer was lost was a sale.
package mine

import (
	"context"
	"errors"

	"stocklock/internal/stock"
	"stocklock/internal/strategy"
)

// Build makes the strategy mine: no guard, and sell.
func Build(strategy.Deps) (strategy.Guard, strategy.Decrement) {
	return strategy.Unguarded{}, sell
}

// sell makes one sale, in up to three tries, and returns its order, or stock.ErrSoldOut.
func sell(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	for try := 1; ; try++ {
		order, err := once(ctx, store, wanted)
		if err == nil || errors.Is(err, stock.ErrSoldOut) || try == 3 {
			return order, err
		}
	}
}

func once(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	var order stock.Order
	err := store.Transact(ctx, func(tx stock.Tx) error {
		left, ok, err := tx.Take(wanted.ItemID, wanted.Quantity)
		if err != nil {
			return err
		}
		if !ok {
			return stock.ErrSoldOut
		}
		order, err = tx.Record(wanted, left+wanted.Quantity, left)
		return err
	})
	return order, err
}
