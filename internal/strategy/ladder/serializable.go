package ladder

import (
	"context"
	"database/sql"

	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var serializable = lockingRows(strategy.Strategy{
	Name:  "serializable",
	Doc:   "read-then-write in one SERIALIZABLE transaction: of two that have read the row, one is ended by a deadlock, and repeated",
	Build: strategy.Retrying(sellSerializably),
}, declared.Strategy{
	Source:    "MySQL Reference Manual, Transaction Isolation Levels",
	Decrement: "SELECT, UPDATE, in a SERIALIZABLE transaction, repeated",
	Telling:   "contention",
})

func sellSerializably(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	order, err := stock.WithinAt(ctx, store, sql.LevelSerializable, func(tx stock.Tx) (stock.Order, error) {
		return strategy.ReadThen(ctx, wanted, func() (stock.Item, error) { return tx.Read(wanted.ItemID) }, tx.Write)
	})
	return strategy.Written(ctx, order, err)
}
