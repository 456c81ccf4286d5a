package ladder

import (
	"context"
	"database/sql"
	"log/slog"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var serializable = Declare(strategy.Strategy{
	Name:         "serializable",
	Doc:          "read-then-write in one SERIALIZABLE transaction: of two that have read the row, one is ended by a deadlock, and repeated",
	WithoutRedis: true,
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return strategy.Unguarded{}, strategy.RetryConflicts(d.Options, sellSerializably)
	},
}, declared.Strategy{
	Source:       "MySQL Reference Manual, Transaction Isolation Levels",
	Guard:        "nothing",
	Decrement:    "SELECT, UPDATE, in a SERIALIZABLE transaction, repeated",
	Telling:      "contention",
	Servers:      declared.EveryServer,
	Properties:   DatabaseLock,
	WaitsInMySQL: true,
})

func sellSerializably(ctx context.Context, store *stock.Store, wanted stock.Sale) (order stock.Order, err error) {
	err = store.TransactAt(ctx, sql.LevelSerializable, func(tx stock.Tx) error {
		var read []int64
		if err := tx.Query(&read, "SELECT stock FROM items WHERE id = ?", wanted.ItemID); err != nil {
			return err
		}
		if len(read) == 0 {
			return stock.ErrNotFound
		}
		sale.At(ctx, sale.Read, slog.Int64("stock", read[0]))
		if read[0] < wanted.Quantity {
			return stock.ErrSoldOut
		}
		sale.At(ctx, sale.Write)
		left := read[0] - wanted.Quantity
		if _, _, err := tx.Exec("UPDATE items SET stock = ?, version = version + 1 WHERE id = ?", left, wanted.ItemID); err != nil {
			return err
		}
		order, err = tx.Record(wanted, read[0], left)
		return err
	})
	return strategy.Written(ctx, order, err)
}
