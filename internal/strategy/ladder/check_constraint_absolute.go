package ladder

import (
	"context"
	"log/slog"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var checkConstraintAbsolute = Declare(strategy.Strategy{
	Name:         "check-constraint-absolute",
	Doc:          "the same CHECK of the column, and a write of what was computed in the program: no value that is written is below 0",
	WithoutRedis: true,
	Build:        strategy.Retrying(sellCheckedAbsolutely),
}, declared.Strategy{
	Source:     "an ORM's save() after stock -= 1, with an UNSIGNED column as the guard",
	Guard:      "nothing",
	Decrement:  "SELECT, UPDATE stock_checked SET stock = ?, with CHECK (stock >= 0)",
	Telling:    "contention",
	Servers:    declared.ReadsSource | declared.RewindProof | declared.SwitchoverProof,
	Properties: none.Declared.Properties,
	State:      inCheckedStock,
})

// sellCheckedAbsolutely leaves it to the column to refuse a stock below 0.
func sellCheckedAbsolutely(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	order, err := stock.Within(ctx, store, func(tx stock.Tx) (none stock.Order, err error) {
		var read []int64
		if err := tx.Query(&read, "SELECT stock FROM stock_checked WHERE item_id = ?", wanted.ItemID); err != nil {
			return none, err
		}
		if len(read) == 0 {
			return none, stock.ErrNotFound
		}
		sale.At(ctx, sale.Read, slog.Int64("stock", read[0]))
		sale.At(ctx, sale.Write)
		left := read[0] - wanted.Quantity
		if _, _, err := tx.Exec("UPDATE stock_checked SET stock = ? WHERE item_id = ?", left, wanted.ItemID); err != nil {
			return none, soldOutByColumn(err)
		}
		return tx.Record(wanted, read[0], left)
	})
	return strategy.Written(ctx, order, err)
}
