package strategy

import (
	"context"
	"log/slog"
	"time"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
)

// How long a transaction may take: one that only writes, and one that also waits for other holders
// of the row.
const (
	writeTimeout = 5 * time.Second
	rowTimeout   = 15 * time.Second
)

// committing returns the context of a transaction. It does not end with the lock's or the request's
// context: the outcome of a COMMIT that is cancelled half-way is unknown.
func committing(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), timeout)
}

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
	if ctx.Err() != nil {
		return stock.Order{}, context.Cause(ctx)
	}
	sale.At(ctx, sale.Write)
	tx, cancel := committing(ctx, writeTimeout)
	defer cancel()
	order, err := write(tx, wanted, item)
	return written(ctx, order, err)
}

// written announces an order that was committed.
func written(ctx context.Context, order stock.Order, err error) (stock.Order, error) {
	if err != nil {
		return stock.Order{}, err
	}
	sale.At(ctx, sale.Written, slog.Int64("stock", order.StockWritten))
	return order, nil
}
