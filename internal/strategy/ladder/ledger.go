package ladder

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"log/slog"

	"github.com/google/uuid"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var ledger = Declare(strategy.Strategy{
	Name:         "ledger",
	Doc:          "the stock is the sum of an append-only table: check the sum, then append a row, in one transaction",
	WithoutRedis: true,
	Build:        strategy.Retrying(sellFromLedger(sql.LevelRepeatableRead, nobody)),
}, declared.Strategy{
	Source:     "Magento's inventory_reservation, 2018; write skew (A5B) of Berenson et al., 1995",
	Guard:      "nothing",
	Decrement:  "SELECT SUM(quantity), INSERT, in a transaction",
	Telling:    "contention",
	Servers:    declared.ReadsSource | declared.RewindProof | declared.SwitchoverProof,
	Properties: none.Declared.Properties,
	State:      inLedger,
})

// inLedger moves the units of an item's row to its ledger, where a restock is one more row.
var inLedger = declared.State{
	Setup: []string{
		"INSERT INTO stock_ledger (item_id, part, entry, quantity) SELECT id, part, UUID(), IF(part = 1, stock, 0) FROM items " +
			"CROSS JOIN (SELECT 0 AS part UNION ALL SELECT 1 UNION ALL SELECT 2) parts WHERE id = ?",
		"UPDATE items SET stock = 0, version = version + 1 WHERE id = ?",
	},
	Remaining: "SELECT COALESCE(SUM(quantity), 0) AS stock FROM stock_ledger WHERE item_id = ? AND part = 1",
	Whole:     true,
	Sum:       true,
}

// nobody locks nothing.
func nobody(stock.Tx, uint64) error { return nil }

// sellFromLedger appends a row if the sum is large enough. Lock is called before the sum is read, which
// is the first consistent read of the transaction.
func sellFromLedger(level sql.IsolationLevel, lock func(tx stock.Tx, itemID uint64) error) strategy.Decrement {
	return func(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
		order, err := stock.WithinAt(ctx, store, level, func(tx stock.Tx) (none stock.Order, err error) {
			if err := lock(tx, wanted.ItemID); err != nil {
				return none, err
			}
			var sum []int64
			if err := tx.Query(&sum, inLedger.Remaining, wanted.ItemID); err != nil {
				return none, err
			}
			sale.At(ctx, sale.Read, slog.Int64("stock", sum[0]), slog.String(sale.From, sale.FromSum))
			if sum[0] < wanted.Quantity {
				return none, stock.ErrSoldOut
			}
			sale.At(ctx, sale.Write)
			wanted.OrderID = cmp.Or(wanted.OrderID, uuid.Must(uuid.NewV7()).String())
			_, _, err = tx.Exec("INSERT INTO stock_ledger (item_id, entry, quantity) VALUES (?, ?, ?)", wanted.ItemID, wanted.OrderID, -wanted.Quantity)
			if err != nil {
				return none, err
			}
			return tx.Record(wanted, sum[0], sum[0]-wanted.Quantity)
		})
		if errors.Is(err, stock.ErrSoldOut) { // the sum of an item that does not exist is 0, too
			if _, missing := store.Read(ctx, wanted.ItemID); missing != nil {
				err = missing
			}
		}
		return strategy.Written(ctx, order, err)
	}
}
