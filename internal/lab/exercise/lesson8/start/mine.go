// Package mine is exercise 8: a right lock in the wrong place.
//
// The lock of this file is the reference lock: it lets one sale in at a time. The sale is one transaction, as
// a method with an annotation is, and the lock is taken and freed inside it. Two customers get one unit all the
// same. Change sell so that no sale reads what another one is about to change. Several ways are right.
//
// The lock and the store have what is needed:
//
//	s.lock.Do(ctx, key, fn)                 // holds the lock while fn runs
//	held, _, free, err := s.lock.Hold(ctx, key) // takes the lock: sell with held, and call free once
//	store.TransactAt(ctx, isolation, fn)    // BEGIN; fn; COMMIT, or ROLLBACK after an error
//	tx.Query(&rows, "SELECT ...", id)       // FOR UPDATE works, too
package mine

import (
	"context"
	"database/sql"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
)

// Build makes the strategy mine.
func Build(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
	s := shop{strategy.Reference(d)}
	return s, s.sell
}

// shop is a guard that lets every sale in: each takes the lock by itself.
type shop struct{ lock strategy.LockGuard }

func (shop) Do(ctx context.Context, _ string, fn func(context.Context, int64) error) error {
	return fn(ctx, 0)
}
func (s shop) Close(ctx context.Context) error { return s.lock.Close(ctx) }

// sell makes one sale and returns its order, or stock.ErrSoldOut.
func (s shop) sell(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	var order stock.Order
	err := store.TransactAt(ctx, sql.LevelRepeatableRead, func(tx stock.Tx) error {
		return s.lock.Do(ctx, sale.Key(wanted.ItemID), func(context.Context, int64) (err error) {
			order, err = take(tx, wanted)
			return err
		})
	})
	if err != nil { // it was rolled back
		return stock.Order{}, err
	}
	return order, nil
}

// take reads the stock and writes what is left of it.
func take(tx stock.Tx, wanted stock.Sale) (stock.Order, error) {
	var left []int64
	if err := tx.Query(&left, "SELECT stock FROM items WHERE id = ?", wanted.ItemID); err != nil {
		return stock.Order{}, err
	}
	if len(left) == 0 {
		return stock.Order{}, stock.ErrNotFound
	}
	read, written := left[0], left[0]-wanted.Quantity
	if written < 0 {
		return stock.Order{}, stock.ErrSoldOut
	}
	if _, _, err := tx.Exec("UPDATE items SET stock = ? WHERE id = ?", written, wanted.ItemID); err != nil {
		return stock.Order{}, err
	}
	return tx.Record(wanted, read, written)
}
