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
