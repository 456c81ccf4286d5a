package strategy

import (
	"context"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
)

var conditional = Strategy{
	Name:         "conditional",
	Doc:          "UPDATE ... SET stock = stock - ? WHERE stock >= ?: one statement, no lock needed, where the work fits in one statement",
	WithoutRedis: true,
	Mixable:      true,
	Baskets:      true,
	Build: func(d Deps) (Guard, Decrement) {
		return Unguarded{}, retryConflicts(d.Options, sellConditionally(&soldOutItems{}))
	},
}

// sellConditionally passes the point read without reading, because a fault at that point must hit
// this strategy, too.
func sellConditionally(soldOut *soldOutItems) Decrement {
	return func(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
		sale.At(ctx, sale.Read)
		if err := soldOut.check(ctx, store, wanted); err != nil {
			return stock.Order{}, err
		}
		wanted.Ready = lastLook(ctx)
		order, err := store.Decrement(ctx, wanted)
		soldOut.note(wanted, err)
		return written(ctx, order, err)
	}
}
