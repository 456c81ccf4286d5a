package strategy

import (
	"context"
	"log/slog"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
)

// readThen reads the stock, checks it, checks the lock once more, and writes. No lock with a lease
// can protect the time between that last check and the write.
func readThen(ctx context.Context, store *stock.Store, wanted stock.Sale,
	write func(context.Context, stock.Sale, ...stock.Item) (stock.Order, error)) (stock.Order, error) {
	items, err := store.ReadLines(ctx, wanted)
	if err != nil {
		return stock.Order{}, err
	}
	sale.At(ctx, sale.Read, slog.Int64("stock", items[0].Stock))
	order, err := thenWrite(ctx, wanted, items, func(wanted stock.Sale, read ...stock.Item) (stock.Order, error) {
		return write(ctx, wanted, read...)
	})
	return Written(ctx, order, err)
}

func thenWrite(ctx context.Context, wanted stock.Sale, read []stock.Item,
	write func(stock.Sale, ...stock.Item) (stock.Order, error)) (stock.Order, error) {
	if err := wanted.Check(read); err != nil {
		return stock.Order{}, err
	}
	wanted.Ready = lastLook(ctx)
	return write(wanted, read...)
}

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
