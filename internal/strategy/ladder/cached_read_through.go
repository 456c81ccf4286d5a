package ladder

import (
	"context"

	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var cachedReadThrough = Declare(strategy.Strategy{
	Name: "cached-read-through",
	Doc:  "cached-read that sets the cache's entry after its COMMIT instead of deleting it: write-through",
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		c := cache{d}
		return strategy.Reference(d), then(strategy.ReadThenWriteBy(c.read), func(ctx context.Context, made stock.Order) error {
			return c.set(ctx, made.ItemID, made.StockWritten)
		})
	},
}, declared.Strategy{
	Source:     "write-through caches, used for a decision",
	Guard:      ReferenceGuard,
	Decrement:  "GET the copy, or SELECT and SET; UPDATE, INSERT; SET the copy",
	Telling:    "page-view",
	Servers:    declared.EveryServer, // while there is a copy: without one, a server that is behind can set it
	Properties: reentrant.Declared.Properties,
	State:      copied,
}).viewedBy(viewThroughCache)
