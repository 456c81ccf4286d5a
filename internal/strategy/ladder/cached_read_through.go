package ladder

import (
	"context"

	"stocklock/internal/stock"
	"stocklock/internal/strategy"
)

var cachedReadThrough = strategy.Strategy{
	Name:       "cached-read-through",
	Doc:        "cached-read that sets the cache's entry after its COMMIT instead of deleting it: write-through",
	Source:     "write-through caches, used for a decision",
	Guard:      strategy.ReferenceGuard,
	Decrement:  "GET the copy, or SELECT and SET; UPDATE, INSERT; SET the copy",
	Telling:    "page-view",
	Servers:    strategy.EveryServer,
	Properties: reentrant.Properties,
	State:      copied,
	View:       viewThroughCache,
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		c := cache{d}
		return strategy.Reference(d), then(strategy.ReadThenWriteBy(c.read), func(ctx context.Context, made stock.Order) error {
			return c.set(ctx, made.ItemID, made.StockWritten)
		})
	},
}
