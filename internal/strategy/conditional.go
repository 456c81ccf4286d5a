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
	RefusesEarly: true,
	FindsRepeats: true,
	Build: func(d Deps) (Guard, Decrement) {
		return Unguarded{}, retryConflicts(d.Options, sellConditionally)
	},
}

// sellConditionally passes the point read without reading, because a fault at that point must hit
// this strategy, too. The INSERT finds a key that has an order.
func sellConditionally(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	sale.At(ctx, sale.Read)
	wanted.Ready = lastLook(ctx)
	order, err := store.Decrement(ctx, wanted)
	return written(ctx, order, err)
}
