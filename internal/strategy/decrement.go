package strategy

import (
	"context"
	"log/slog"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
)

// ReadThenWrite reads the stock, checks it, and writes back what it computed. Updates are lost
// unless a guard keeps everybody else out.
func ReadThenWrite(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	return readThen(ctx, store, wanted, store.Write)
}

// readThen reads, checks, looks once more whether the lock is still held, and writes. No lock with
// a lease can prevent what happens between that last look and the write.
func readThen(ctx context.Context, store *stock.Store, wanted stock.Sale,
	write func(context.Context, stock.Sale, stock.Item) (stock.Order, error)) (stock.Order, error) {
	item, err := store.Read(ctx, wanted.ItemID)
	if err != nil {
		return stock.Order{}, err
	}
	sale.At(ctx, sale.Read, slog.Int64("stock", item.Stock))
	if _, err := item.Take(wanted.Quantity); err != nil {
		return stock.Order{}, err
	}
	wanted.Ready = lastLook(ctx)
	order, err := write(ctx, wanted, item)
	return written(ctx, order, err)
}

// lastLook returns what a store calls when it has a connection and is about to write: whether the
// lock is still held, and the point write. A wait for a connection can outlast a lease, so it must
// lie before that look.
func lastLook(ctx context.Context) func() error {
	return func() error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		sale.At(ctx, sale.Write)
		return nil
	}
}

// written announces an order that was committed.
func written(ctx context.Context, order stock.Order, err error) (stock.Order, error) {
	if err != nil {
		return stock.Order{}, err
	}
	sale.At(ctx, sale.Written, slog.Int64("stock", order.StockWritten))
	return order, nil
}
