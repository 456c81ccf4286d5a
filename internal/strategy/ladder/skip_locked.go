package ladder

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var skipLocked = lockingRows(strategy.Strategy{
	Name:  "skip-locked",
	Doc:   "one row for each free unit, taken with FOR UPDATE SKIP LOCKED from a pool that is refilled under the item's lock",
	Build: strategy.Retrying(sellUnits),
}, declared.Strategy{
	Source:    "Shopify's move of reservations from Redis to MySQL, 2026; MySQL Reference Manual, Locking Reads",
	Decrement: "SELECT ... FOR UPDATE SKIP LOCKED, DELETE; refill: UPDATE items, INSERT units",
	Telling:   "contention",
	State:     declared.State{Remaining: "SELECT COUNT(*) FROM stock_units WHERE item_id = ?"},
})

// unitPool bounds the free rows of one item. Each sale skips the rows that others have locked, so a
// pool without a bound makes every sale slower. Sales also skip the rows of a refill that is not committed: 125 of them
// kept MariaDB on two processors from inserting 1,000 rows for a minute.
const unitPool = 100

// sellUnits sells free rows. If too few are unlocked, it refills the pool and tries again. An order of more than the
// pool is sold from the item's row. An order's stock_read is the number of its highest unit.
func sellUnits(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	sale.At(ctx, sale.Read)
	sale.At(ctx, sale.Write)
	if wanted.Quantity > unitPool {
		order, err := sellFromRow(ctx, store, wanted)
		return strategy.Written(ctx, order, err)
	}
	for {
		order, err := sellFreeUnits(ctx, store, wanted)
		if err != nil || order.ID != 0 {
			return strategy.Written(ctx, order, err)
		}
		filled, err := refillUnits(ctx, store, wanted)
		if err != nil {
			return stock.Order{}, fmt.Errorf("order %d of item %d: %w", wanted.Quantity, wanted.ItemID, err)
		}
		if !filled {
			// Enough rows exist, but they are locked. Their sales may give up.
			return stock.Order{}, stock.ErrConflict
		}
	}
}

// sellFreeUnits returns no order and no error if too few rows are unlocked.
func sellFreeUnits(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	return stock.Within(ctx, store, func(tx stock.Tx) (none stock.Order, err error) {
		var units []int64
		err = tx.Query(&units, "SELECT unit FROM stock_units WHERE item_id = ? LIMIT ? FOR UPDATE SKIP LOCKED", wanted.ItemID, wanted.Quantity)
		if err != nil || int64(len(units)) < wanted.Quantity {
			return none, err
		}
		deleted, _, err := tx.Exec("DELETE FROM stock_units WHERE item_id = ? AND unit IN ("+list(units)+")", wanted.ItemID)
		if err != nil {
			return none, err
		}
		if deleted != wanted.Quantity { // a server that splits reads from writes locked other rows
			return none, stock.ErrConflict
		}
		highest := slices.Max(units)
		return tx.Record(wanted, highest, highest-wanted.Quantity)
	})
}

// refillUnits moves units from the item's row into the pool, and reports whether it moved any. It
// returns stock.ErrSoldOut if the row and the pool, including locked rows, have too few.
func refillUnits(ctx context.Context, store *stock.Store, wanted stock.Sale) (filled bool, err error) {
	return stock.Within(ctx, store, func(tx stock.Tx) (bool, error) {
		var left []int64
		var pool []struct{ Units, Highest int64 }
		if err := tx.Query(&left, "SELECT stock FROM items WHERE id = ? FOR UPDATE", wanted.ItemID); err != nil {
			return false, err
		}
		if len(left) == 0 {
			return false, stock.ErrNotFound
		}
		if err := tx.Query(&pool, "SELECT COUNT(*) AS units, COALESCE(MAX(unit), 0) AS highest FROM stock_units WHERE item_id = ?", wanted.ItemID); err != nil {
			return false, err
		}
		if left[0]+pool[0].Units < wanted.Quantity {
			return false, stock.ErrSoldOut
		}
		n := min(left[0], unitPool-pool[0].Units)
		if n <= 0 {
			return false, nil
		}
		top := max(left[0], pool[0].Highest+n) // units that came back to the row may have numbers of the pool
		rows := make([]string, n)
		for i := range rows {
			rows[i] = fmt.Sprintf("(%d,%d)", wanted.ItemID, top-int64(i))
		}
		if _, _, err := tx.Exec("INSERT INTO stock_units (item_id, unit) VALUES " + strings.Join(rows, ",")); err != nil {
			return false, err
		}
		_, err := tx.Take(wanted.ItemID, n)
		return err == nil, err
	})
}

// sellFromRow puts the pool back into the item's row, under its lock, and sells from there.
func sellFromRow(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	return stock.Within(ctx, store, func(tx stock.Tx) (none stock.Order, err error) {
		if _, err := tx.Lock(wanted.ItemID); err != nil {
			return none, err
		}
		pool, _, err := tx.Exec("DELETE FROM stock_units WHERE item_id = ?", wanted.ItemID)
		if err != nil {
			return none, err
		}
		left, err := tx.Take(wanted.ItemID, wanted.Quantity-pool)
		if err != nil {
			return none, err
		}
		return tx.Record(wanted, left+wanted.Quantity, left)
	})
}

// list writes numbers for an IN list.
func list(numbers []int64) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = fmt.Sprint(n)
	}
	return strings.Join(words, ",")
}
