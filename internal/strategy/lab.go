package strategy

// What only strategies of the lab use. A copy of the shop has none of it.

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

// RetryBackingOff is [RetryConflicts] with a pause that doubles. Sales whose locks do not keep out the
// repeats of others need it: those that come again at once can starve each other without an end.
func RetryBackingOff(o Options, sell Decrement) Decrement { return retryPausing(o, o.Wait/8, sell) }

type postedKey struct{}

// WithPosted returns a context for a sale whose customer posted these lines. [stock.Sale.SetLines] has
// sorted and merged those of the sale itself. Only strategies that do without need them.
func WithPosted(ctx context.Context, lines []stock.Line) context.Context {
	return context.WithValue(ctx, postedKey{}, lines)
}

// Posted returns the lines of a sale as its customer posted them, or those of the sale.
func Posted(ctx context.Context, sale stock.Sale) []stock.Line {
	if lines, ok := ctx.Value(postedKey{}).([]stock.Line); ok {
		return lines
	}
	return sale.Lines()
}
