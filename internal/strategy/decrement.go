package strategy

import (
	"context"
	"log/slog"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
)

// ReadThenWrite reads the stock, checks it, and writes back what it computed. Updates are lost
// unless a guard excludes all other sales.
func ReadThenWrite(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	return readThen(ctx, store, wanted, store.Write)
}

// ReadThenWriteBy is [ReadThenWrite] with another way to read the item. From says where it was read, if
// that is not the item's row: a fact of the point read.
func ReadThenWriteBy(read func(ctx context.Context, itemID uint64) (item stock.Item, from string, err error)) Decrement {
	return func(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
		item, from, err := read(ctx, wanted.ItemID)
		if err != nil {
			return stock.Order{}, err
		}
		facts := []slog.Attr{slog.Int64("stock", item.Stock)}
		if from != "" {
			facts = append(facts, slog.String(sale.From, from))
		}
		sale.At(ctx, sale.Read, facts...)
		order, err := thenWrite(ctx, wanted, []stock.Item{item}, func(wanted stock.Sale, read ...stock.Item) (stock.Order, error) {
			return store.Write(ctx, wanted, read...)
		})
		return Written(ctx, order, err)
	}
}

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

// ReadThen makes a sale of one line of a read and of a write of what follows from it, and announces the
// points read and write. The sale that write is given looks at the lock once more when it is ready. The
// caller announces the order when it is committed: see [Written].
func ReadThen(ctx context.Context, wanted stock.Sale, read func() (stock.Item, error),
	write func(stock.Sale, ...stock.Item) (stock.Order, error)) (stock.Order, error) {
	item, err := read()
	if err != nil {
		return stock.Order{}, err
	}
	sale.At(ctx, sale.Read, slog.Int64("stock", item.Stock))
	return thenWrite(ctx, wanted, []stock.Item{item}, write)
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
