// Package mine is exercise 9: two items, two orders.
//
// This file sells baskets. It takes the reference lock of each item in the order in which the customer has the
// items, and then reads and writes. Two baskets with the same items in opposite orders wait for each other until
// one of them is refused. Change sell so that no customer is refused units that are there, that no unit is sold
// twice, and that no unit is lost when the shop dies. Other writers of this shop go by the items' ids. Several
// ways are right.
//
// The lock and the store have what is needed:
//
//	held, _, free, err := s.lock.Hold(ctx, key) // takes one more lock: go on with held, and call free once
//	wanted.Lines()                       // the lines in the order of the items' ids, those of one item as one
//	store.Transact(ctx, fn)              // BEGIN; fn; COMMIT, or ROLLBACK after an error
//	tx.Lock(id)                          // SELECT ... FOR UPDATE
//	tx.Take(id, quantity)                // UPDATE ... SET stock = stock - ? WHERE id = ? AND stock >= ?
//	tx.RecordLines(wanted, read)         // the order; read has the stock of each line before it was taken
//	strategy.RetryConflicts(d.Options, s.sell)  // repeats a sale whose transaction MySQL has ended
//
// The check holds a sale where it calls taken: call it after the units of each line were taken, and before the
// order is written.
package mine

import (
	"context"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
)

// Build makes the strategy mine.
func Build(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
	s := shop{strategy.Reference(d)}
	return s, s.sell
}

// shop is a guard that lets every sale in: each takes its locks by itself.
type shop struct{ lock strategy.LockGuard }

func (shop) Do(ctx context.Context, _ string, fn func(context.Context, int64) error) error {
	return fn(ctx, 0)
}
func (s shop) Close(ctx context.Context) error { return s.lock.Close(ctx) }

func taken(ctx context.Context) { sale.At(ctx, sale.Taken) }

// sell makes one sale and returns its order, or stock.ErrSoldOut.
func (s shop) sell(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	lines := strategy.Posted(ctx, wanted) // as the customer has them
	for _, line := range lines {
		held, _, free, err := s.lock.Hold(ctx, sale.Key(line.ItemID))
		if err != nil {
			return stock.Order{}, err
		}
		defer free()
		ctx = held
	}
	return write(ctx, store, of(wanted, lines))
}

// of is the sale of these lines, as they are.
func of(wanted stock.Sale, lines []stock.Line) stock.Sale {
	wanted.ItemID, wanted.Quantity, wanted.More = lines[0].ItemID, lines[0].Quantity, lines[1:]
	return wanted
}

// write checks each line, and then takes all of them in one transaction.
func write(ctx context.Context, store *stock.Store, wanted stock.Sale) (order stock.Order, err error) {
	var read, left []int64
	for _, line := range wanted.Lines() {
		item, err := store.Read(ctx, line.ItemID)
		if err != nil {
			return stock.Order{}, err
		}
		after, err := item.Take(line.Quantity)
		if err != nil {
			return stock.Order{}, err
		}
		read, left = append(read, item.Stock), append(left, after)
	}
	err = store.Transact(ctx, func(tx stock.Tx) (err error) {
		for i, line := range wanted.Lines() {
			if _, _, err := tx.Exec("UPDATE items SET stock = ?, version = version + 1 WHERE id = ?", left[i], line.ItemID); err != nil {
				return err
			}
			taken(ctx)
		}
		order, err = tx.RecordLines(wanted, read)
		return err
	})
	return order, err
}
