package strategy

import (
	"context"
	"log/slog"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
)

// sellConditionally passes the point read without reading, because a fault at that point must hit
// this strategy, too. The INSERT finds a key that has an order.
func sellConditionally(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	sale.At(ctx, sale.Read)
	wanted.Ready = lastLook(ctx)
	order, err := store.Decrement(ctx, wanted)
	return Written(ctx, order, err)
}

// lastLook returns the function that a store calls when it has a connection and is about to write.
// It checks the lock and announces the point write. A wait for a connection can outlast a lease, so
// it must come before this check.
func lastLook(ctx context.Context) func() error {
	return func() error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		sale.At(ctx, sale.Write)
		return nil
	}
}

// Written announces an order that was committed.
func Written(ctx context.Context, order stock.Order, err error) (stock.Order, error) {
	if err != nil {
		return stock.Order{}, err
	}
	sale.At(ctx, sale.Written, slog.Int64("stock", order.StockWritten))
	return order, nil
}
