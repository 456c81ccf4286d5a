package ladder

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var buckets = lockingRows(strategy.Strategy{
	Name:  "buckets",
	Doc:   "the item's stock split over eight rows: sales of one unit wait for one row in eight",
	Build: strategy.Retrying(sellFromBuckets),
}, declared.Strategy{
	Source:    "escrow, O'Neil, 1986; slot counters, as in High Performance MySQL",
	Decrement: "UPDATE stock_buckets SET stock = stock - ? WHERE bucket = ? AND stock >= ?",
	Telling:   "contention",
	ByChance:  true,
	State: declared.State{
		Setup:     splitIntoBuckets,
		Remaining: "SELECT COALESCE(SUM(stock), 0) FROM stock_buckets WHERE item_id = ?",
	},
})

const bucketCount = 8

// splitIntoBuckets adds the units of the item's row to its buckets. The first ones get the
// remainder.
var splitIntoBuckets = []string{
	fmt.Sprintf("INSERT INTO stock_buckets (item_id, bucket, stock) WITH RECURSIVE numbers (bucket) AS "+
		"(SELECT 0 UNION ALL SELECT bucket + 1 FROM numbers WHERE bucket < %[1]d - 1) "+
		"SELECT id, bucket, stock DIV %[1]d + (bucket < stock MOD %[1]d) FROM items CROSS JOIN numbers WHERE id = ? "+
		"ON DUPLICATE KEY UPDATE stock = stock_buckets.stock + VALUES(stock_buckets.stock)", bucketCount),
	"UPDATE items SET stock = 0, version = version + 1 WHERE id = ?",
}

// sellFromBuckets sells one unit from a bucket chosen by chance, and several units from all buckets
// together. An order's stock is that of the buckets it was sold from.
func sellFromBuckets(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	sale.At(ctx, sale.Read)
	sale.At(ctx, sale.Write)
	if wanted.Quantity > 1 {
		order, err := sellFromAll(ctx, store, wanted)
		return strategy.Written(ctx, order, err)
	}
	order, err := sellFromOne(ctx, store, wanted, rand.IntN(bucketCount))
	for errors.Is(err, stock.ErrSoldOut) {
		// A plain SELECT finds the last units: it waits for no bucket that is empty.
		var left []int
		err = store.Transact(ctx, func(tx stock.Tx) error {
			return tx.Query(&left, "SELECT bucket FROM stock_buckets WHERE item_id = ? AND stock > 0", wanted.ItemID)
		})
		if err == nil && len(left) == 0 {
			if _, err = store.Read(ctx, wanted.ItemID); err == nil {
				err = stock.ErrSoldOut
			}
			break
		}
		if err == nil {
			order, err = sellFromOne(ctx, store, wanted, left[rand.IntN(len(left))])
		}
	}
	return strategy.Written(ctx, order, err)
}

func sellFromOne(ctx context.Context, store *stock.Store, wanted stock.Sale, bucket int) (stock.Order, error) {
	return stock.Within(ctx, store, func(tx stock.Tx) (none stock.Order, err error) {
		matched, left, err := tx.Exec("UPDATE stock_buckets SET stock = LAST_INSERT_ID(stock - 1) WHERE item_id = ? AND bucket = ? AND stock >= 1",
			wanted.ItemID, bucket)
		if err != nil {
			return none, err
		}
		if matched == 0 {
			return none, stock.ErrSoldOut
		}
		return tx.Record(wanted, left+1, left)
	})
}

// sellFromAll locks the buckets in the order of their numbers, so two such sales never wait for
// each other.
func sellFromAll(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	order, err := stock.Within(ctx, store, func(tx stock.Tx) (none stock.Order, err error) {
		var stocks []int64
		if err := tx.Query(&stocks, "SELECT stock FROM stock_buckets WHERE item_id = ? ORDER BY bucket FOR UPDATE", wanted.ItemID); err != nil {
			return none, err
		}
		if len(stocks) == 0 {
			return none, stock.ErrNotFound
		}
		sum, missing := int64(0), wanted.Quantity
		for _, s := range stocks {
			sum += s
		}
		if sum < wanted.Quantity {
			return none, stock.ErrSoldOut
		}
		for bucket, s := range stocks {
			take := min(s, missing)
			if take == 0 {
				continue
			}
			if _, _, err := tx.Exec("UPDATE stock_buckets SET stock = stock - ? WHERE item_id = ? AND bucket = ?", take, wanted.ItemID, bucket); err != nil {
				return none, err
			}
			missing -= take
		}
		return tx.Record(wanted, sum, sum-wanted.Quantity)
	})
	if err != nil {
		err = fmt.Errorf("order %d of item %d from its buckets: %w", wanted.Quantity, wanted.ItemID, err)
	}
	return order, err
}
