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

var rowsUnsorted = inRows("rows-unsorted", strategy.Posted,
	"SELECT ... FOR UPDATE and UPDATE of one row after the other, as the customer has them: two orders of rows can deadlock",
	"django-oscar, pull request 4594, before it: place_order locks stock records in the order of the basket's lines")

var rowsSorted = inRows("rows-sorted", sorted,
	"the same in the order of the items' ids: whoever waits has only rows before that one",
	"Vendure, pull request 4930: stock rows are locked in one order")

func inRows(name string, lines linesOf, doc, source string) ladder.Rung {
	return declare(strategy.Strategy{
		Name:         name,
		Doc:          doc,
		WithoutRedis: true,
		Build: strategy.Retrying(func(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
			return sellInRows(ctx, store, with(wanted, lines(ctx, wanted)))
		}),
	}, declared.Strategy{
		Source:    source,
		Telling:   "crossed",
		Decrement: "SELECT ... FOR UPDATE, UPDATE, for each line, in a transaction",
		Baskets:   &ladder.BasketsInRows,
	})
}

func sellInRows(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	lines := wanted.Lines()
	order, err := stock.Within(ctx, store, func(tx stock.Tx) (none stock.Order, err error) {
		var read []int64
		for i, line := range lines {
			item, err := tx.Lock(line.ItemID)
			if err != nil {
				return none, err
			}
			sale.At(ctx, sale.Read, slog.Int64("stock", item.Stock))
			left, err := item.Take(line.Quantity)
			if err != nil {
				return none, err
			}
			if _, _, err := tx.Exec("UPDATE items SET stock = ?, version = version + 1 WHERE id = ?", left, line.ItemID); err != nil {
				return none, err
			}
			read = append(read, item.Stock)
			if i < len(lines)-1 {
				taken(ctx)
			}
		}
		sale.At(ctx, sale.Write)
		return tx.RecordLines(wanted, read)
	})
	return strategy.Written(ctx, order, err)
}
