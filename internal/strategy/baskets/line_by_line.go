package baskets

import (
	"context"
	"log/slog"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/strategy/ladder"
)

var lineByLine = declare(strategy.Strategy{
	Name:         "line-by-line",
	Doc:          "a decrement and a row of the order for each line, each line committed by itself; a later one that is refused undoes nothing",
	WithoutRedis: true,
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return strategy.Unguarded{}, func(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
			return sellLineByLine(ctx, d.Options, store, wanted)
		}
	},
}, declared.Strategy{
	Source:    "MySQL Reference Manual, autocommit, Commit, and Rollback: what is not in one transaction is not rolled back together",
	Decrement: "UPDATE ... WHERE stock >= ?; INSERT; COMMIT, for each line",
	Telling:   "one-sold-out",
	Baskets: &declared.Properties{
		Has:           ladder.BasketsInRows.Has &^ (declared.Complete | declared.Whole | declared.Isolated),
		NotApplicable: ladder.BasketsInRows.NotApplicable,
	},
})

func sellLineByLine(ctx context.Context, o strategy.Options, store *stock.Store, wanted stock.Sale) (order stock.Order, err error) {
	lines := wanted.Lines()
	for i, line := range lines {
		sale.At(ctx, sale.Write)
		_, err := strategy.Repeat(ctx, o, func() (int64, error) {
			return 0, store.Transact(ctx, func(tx stock.Tx) error {
				left, err := tx.Take(line.ItemID, line.Quantity)
				if err != nil {
					return err
				}
				sale.At(ctx, sale.Read, slog.Int64("stock", left+line.Quantity))
				if i == 0 {
					order, err = tx.Record(with(wanted, lines[:1]), left+line.Quantity, left)
					return err
				}
				_, _, err = tx.Exec("INSERT INTO orders (line_of, subject, item_id, quantity, stock_read, stock_written, strategy, run, shop, request_id, created_at) "+
					"SELECT id, subject, ?, ?, ?, ?, strategy, run, shop, request_id, created_at FROM orders WHERE id = ?",
					line.ItemID, line.Quantity, left+line.Quantity, left, order.ID)
				return err
			})
		})
		if err != nil {
			return stock.Order{}, err
		}
		taken(ctx)
	}
	return strategy.Written(ctx, order, nil)
}
