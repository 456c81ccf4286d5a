// Package mine looks for the order of an unknown outcome, and never sells a second time.
package mine

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"stocklock/internal/stock"
	"stocklock/internal/strategy"
)

// Build makes the strategy mine: no guard, and sell.
func Build(strategy.Deps) (strategy.Guard, strategy.Decrement) {
	return strategy.Unguarded{}, sell
}

// sell makes one sale and returns its order, stock.ErrSoldOut or stock.ErrUnknown.
func sell(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	wanted.OrderID = uuid.NewString()
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
	if errors.Is(err, stock.ErrUnknown) {
		if made, found := store.Order(ctx, wanted.OrderID); found == nil {
			return made, nil
		}
	}
	if err != nil {
		return stock.Order{}, err
	}
	return order, nil
}
