package strategy

import (
	"context"
	"log/slog"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
)

// Strategies of other packages use these functions, besides [ReadThenWrite] and the guards.

// DatabaseLock returns the properties of strategies that lock only in the database.
func DatabaseLock() Properties { return databaseLock }

// RetryConflicts returns a decrement that repeats a sale that lost against another transaction.
func RetryConflicts(o Options, sell Decrement) Decrement { return retryConflicts(o, sell) }

// Repeat tries again after it lost against another transaction, until the time to wait is over. It
// announces no point: it is for sales under a lock, which have waited for that.
func Repeat[T any](ctx context.Context, o Options, try func() (T, error)) (T, error) {
	return againstConflicts(ctx, o, func() {}, try)
}

// ReadThen makes a sale of a read and of a write of what follows from it, and announces the points read
// and write. The sale that write is given looks at the lock once more when it is ready. The caller
// announces the order when it is committed: see [Written].
func ReadThen(ctx context.Context, wanted stock.Sale, read func() (stock.Item, error),
	write func(stock.Sale, stock.Item) (stock.Order, error)) (stock.Order, error) {
	item, err := read()
	if err != nil {
		return stock.Order{}, err
	}
	sale.At(ctx, sale.Read, slog.Int64("stock", item.Stock))
	if _, err := item.Take(wanted.Quantity); err != nil {
		return stock.Order{}, err
	}
	wanted.Ready = lastLook(ctx)
	return write(wanted, item)
}

// Written announces an order that was committed.
func Written(ctx context.Context, order stock.Order, err error) (stock.Order, error) {
	return written(ctx, order, err)
}
