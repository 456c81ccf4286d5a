package strategy

import (
	"context"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
)

var conditional = Strategy{
	Name:       "conditional",
	Doc:        "UPDATE ... SET stock = stock - ? WHERE stock >= ?: one statement, no lock needed, where the work fits in one statement",
	Source:     "plain SQL; what to use for a counter in one row",
	Guard:      "nothing",
	Decrement:  "UPDATE ... SET stock = stock - ? WHERE stock >= ?",
	Telling:    "contention",
	Properties: everything,
	build: func(d Deps) (guard, decrement) {
		return unguarded{}, retryConflicts(d.Options, sellConditionally)
	},
}

// sellConditionally passes the point read without reading: it is where the other
// strategies do their work, and where a fault that hits them must hit it too.
func sellConditionally(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	sale.At(ctx, sale.Read)
	sale.At(ctx, sale.Write)
	tx, cancel := committing(ctx, rowTimeout)
	defer cancel()
	order, err := store.Decrement(tx, wanted)
	return written(ctx, order, err)
}
