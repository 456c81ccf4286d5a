package strategy

import (
	"context"

	"stocklock/internal/stock"
)

var optimistic = Strategy{
	Name:         "optimistic",
	Doc:          "UPDATE ... WHERE version = what was read, and again from the start when the item changed meanwhile",
	Source:       "Kung and Robinson, On Optimistic Methods for Concurrency Control, 1981",
	Guard:        "nothing",
	Decrement:    "SELECT, UPDATE ... WHERE version = ? AND stock = ?, retried",
	Telling:      "contention",
	Servers:      EveryServer,
	WithoutRedis: true,
	Properties:   databaseLock,
	Mixable:      true,
	Baskets:      &Properties{Has: basketsInRows.Has &^ Unstarved, NotApplicable: basketsInRows.NotApplicable},
	Build: func(d Deps) (Guard, Decrement) {
		return Unguarded{}, retryConflicts(d.Options, sellVersioned)
	},
}

func sellVersioned(ctx context.Context, store *stock.Store, sale stock.Sale) (stock.Order, error) {
	return readThen(ctx, store, sale, store.WriteVersioned)
}
