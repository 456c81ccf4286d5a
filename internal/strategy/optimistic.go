package strategy

import (
	"context"

	"stocklock/internal/stock"
)

var optimistic = Strategy{
	Name:         "optimistic",
	Doc:          "UPDATE ... WHERE version = what was read, and again from the start when the item changed meanwhile",
	WithoutRedis: true,
	Mixable:      true,
	Baskets:      true,
	RefusesEarly: true,
	Build:        Retrying(sellVersioned),
}

func sellVersioned(ctx context.Context, store *stock.Store, sale stock.Sale) (stock.Order, error) {
	return readThen(ctx, store, sale, store.WriteVersioned)
}
