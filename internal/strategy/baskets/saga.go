package baskets

import (
	"context"
	"errors"
	"log/slog"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var saga = declare(strategy.Strategy{
	Name:         "saga",
	Doc:          "a decrement a line, each committed by itself, and compensated when a later one is refused; nothing remembers them",
	WithoutRedis: true,
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return strategy.Unguarded{}, func(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
			return sellBySaga(ctx, d.Options, store, with(wanted, strategy.Posted(ctx, wanted)))
		}
	},
}, declared.Strategy{
	Source:    "WooCommerce, ReserveStock.php: one autocommitted statement an item, released when a later item fails",
	Decrement: "UPDATE ... WHERE stock >= ?, for each line; UPDATE to compensate; INSERT",
	Telling:   "death-between-lines",
	Baskets: &declared.Properties{
		Has:           declared.Crossable | declared.AddsUp | declared.Unstarved | declared.Complete,
		NotApplicable: declared.FreesLocks | declared.OvertakeProof,
	},
})

func sellBySaga(ctx context.Context, o strategy.Options, store *stock.Store, wanted stock.Sale) (order stock.Order, err error) {
	var read []int64
	lines := wanted.Lines()
	defer func() {
		if err != nil && !errors.Is(err, stock.ErrUnknown) {
			compensate(context.WithoutCancel(ctx), store, lines[:len(read)])
		}
	}()
	for _, line := range lines {
		left, err := strategy.Repeat(ctx, o, func() (int64, error) {
			return stock.Within(ctx, store, func(tx stock.Tx) (int64, error) { return tx.Take(line.ItemID, line.Quantity) })
		})
		if err != nil {
			return stock.Order{}, err
		}
		sale.At(ctx, sale.Read, slog.Int64("stock", left+line.Quantity))
		read = append(read, left+line.Quantity)
		taken(ctx)
	}
	sale.At(ctx, sale.Write)
	order, err = stock.Within(ctx, store, func(tx stock.Tx) (stock.Order, error) { return tx.RecordLines(wanted, read) })
	return strategy.Written(ctx, order, err)
}

// compensate puts units back, each line by itself.
func compensate(ctx context.Context, store *stock.Store, lines []stock.Line) {
	for _, line := range lines {
		err := store.Transact(ctx, func(tx stock.Tx) error {
			_, _, err := tx.Exec("UPDATE items SET stock = stock + ?, version = version + 1 WHERE id = ?", line.Quantity, line.ItemID)
			return err
		})
		if err != nil {
			slog.ErrorContext(ctx, "units were not put back", "item", line.ItemID, "quantity", line.Quantity, "error", err)
		}
	}
}
