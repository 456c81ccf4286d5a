package ladder

import (
	"context"
	"errors"
	"slices"

	mysqldriver "github.com/go-sql-driver/mysql"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var checkConstraint = lockingRows(strategy.Strategy{
	Name:  "check-constraint",
	Doc:   "UPDATE ... SET stock = stock - ?, and a CHECK of the column refuses what would go below 0",
	Build: strategy.Retrying(sellChecked),
}, declared.Strategy{
	Source:    "MySQL Reference Manual, CHECK Constraints, and Out-of-Range and Overflow Handling",
	Decrement: "UPDATE stock_checked SET stock = stock - ?, with CHECK (stock >= 0)",
	Telling:   "contention",
	State:     inCheckedStock,
})

// inCheckedStock moves the units of an item's row to a row whose stock cannot be below 0. The stock of
// items can, so that an oversell of other strategies is seen and not prevented.
var inCheckedStock = declared.State{
	Setup: []string{
		"INSERT INTO stock_checked (item_id, stock) SELECT id, stock FROM items WHERE id = ? " +
			"ON DUPLICATE KEY UPDATE stock = stock_checked.stock + VALUES(stock)",
		"UPDATE items SET stock = 0, version = version + 1 WHERE id = ?",
	},
	Remaining: "SELECT COALESCE(SUM(stock), 0) FROM stock_checked WHERE item_id = ?",
	Whole:     true,
}

// sellChecked asks nothing before it writes.
func sellChecked(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	sale.At(ctx, sale.Read)
	sale.At(ctx, sale.Write)
	order, err := stock.Within(ctx, store, func(tx stock.Tx) (none stock.Order, err error) {
		matched, _, err := tx.Exec("UPDATE stock_checked SET stock = stock - ? WHERE item_id = ?", wanted.Quantity, wanted.ItemID)
		if err != nil {
			return none, soldOutByColumn(err)
		}
		if matched == 0 {
			return none, stock.ErrNotFound
		}
		var left []int64 // its own write, under its own lock
		if err := tx.Query(&left, "SELECT stock FROM stock_checked WHERE item_id = ?", wanted.ItemID); err != nil {
			return none, err
		}
		return tx.Record(wanted, left[0]+wanted.Quantity, left[0])
	})
	return strategy.Written(ctx, order, err)
}

// belowZero are the errors of a server that keeps a column at 0 or above: out of range in an expression
// with an UNSIGNED column, the same under NO_UNSIGNED_SUBTRACTION or of a value that was sent, and a CHECK
// in MySQL and in MariaDB. The second alone needs a strict sql_mode: without one, 0 is stored, with a warning.
var belowZero = []uint16{1690, 1264, 3819, 4025}

// soldOutByColumn makes stock.ErrSoldOut of the refusal of a column.
func soldOutByColumn(err error) error {
	if refused, ok := errors.AsType[*mysqldriver.MySQLError](err); ok && slices.Contains(belowZero, refused.Number) {
		return stock.ErrSoldOut
	}
	return err
}
