package stock

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	mysqldriver "github.com/go-sql-driver/mysql"
	"gorm.io/gorm"
)

// Decrement sells with one conditional statement for each line, UPDATE ... SET stock = stock - ? WHERE
// stock >= ?. It needs neither a lock nor a read before it.
//
// The UPDATE comes before the INSERT of the order. An INSERT first would hold the row's lock for
// one round trip less. The order could then not say which stock it read, and the ids of orders
// would not follow their commits.
func (s *Store) Decrement(ctx context.Context, sale Sale) (Order, error) {
	return s.decrement(ctx, sale, func(ctx context.Context, tx *gorm.DB, line Line) (left int64, ok bool, err error) {
		return take(ctx, tx, line.ItemID, line.Quantity)
	})
}

// DecrementFenced is [Store.Decrement] that also raises each item's fence to the line's token. It is
// refused with [ErrFenced] if a fence is above the token.
//
// The fence adds order, not safety. It refuses an overtaken holder, whose write would be right all
// the same, because it subtracts from the stock in the row. Only a write that depends on a read
// needs [Store.RaiseFence], which raises the fence in a commit of its own before the read.
func (s *Store) DecrementFenced(ctx context.Context, sale Sale) (Order, error) {
	return s.decrementFenced(ctx, sale, func(line Line) int64 { return line.Token })
}

// DecrementOverFence is [Store.DecrementFenced] that sets the fences to the tokens whatever they
// were. It is for a holder that was not overtaken, and met the fence of a clock that was ahead.
func (s *Store) DecrementOverFence(ctx context.Context, sale Sale) (Order, error) {
	return s.decrementFenced(ctx, sale, func(Line) int64 { return math.MaxInt64 })
}

func (s *Store) decrementFenced(ctx context.Context, sale Sale, most func(Line) int64) (Order, error) {
	return s.decrement(ctx, sale, func(ctx context.Context, tx *gorm.DB, line Line) (left int64, ok bool, err error) {
		return leftAfter(ctx, tx,
			"UPDATE items SET stock = LAST_INSERT_ID(stock - ?), version = version + 1, fence = ? WHERE id = ? AND fence <= ? AND stock >= ?",
			line.Quantity, line.Token, line.ItemID, most(line), line.Quantity)
	})
}

// decrement takes the units of each line and records the order. After a refusal, it asks for the
// reason without the locks on the rows.
func (s *Store) decrement(ctx context.Context, sale Sale, take func(context.Context, *gorm.DB, Line) (left int64, ok bool, err error)) (Order, error) {
	var refused *Line
	order, err := s.sell(ctx, rowTimeout, sale, sale.ready, func(tx *gorm.DB, _ int, line Line) (int64, error) {
		left, ok, err := take(tx.Statement.Context, tx, line)
		if err == nil && !ok {
			refused, err = &line, ErrSoldOut
		}
		return left + line.Quantity, err
	})
	if refused != nil {
		asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookFor) // a lock that is lost is no reason
		defer cancel()
		err = s.whyRefused(asking, sale, *refused)
	}
	return order, orderError(sale, err)
}

// whyRefused says why a line was refused. Units that have come back since then do not count for it.
func (s *Store) whyRefused(ctx context.Context, sale Sale, refused Line) error {
	items, err := s.ReadLines(ctx, sale)
	if err != nil {
		return err
	}
	for i, line := range sale.Lines() {
		item := &items[i]
		if line.Token > 0 && item.Fence > line.Token && item.Stock >= line.Quantity {
			return ErrFenced
		}
		if line.ItemID == refused.ItemID {
			item.Stock = min(item.Stock, line.Quantity-1)
		}
	}
	return sale.Check(items)
}

// take takes units of an item, if it has so many, and returns the units left. The row stays locked
// until the transaction ends.
func take(ctx context.Context, tx *gorm.DB, itemID uint64, quantity int64) (left int64, ok bool, err error) {
	return leftAfter(ctx, tx, "UPDATE items SET stock = LAST_INSERT_ID(stock - ?), version = version + 1 WHERE id = ? AND stock >= ?",
		quantity, itemID, quantity)
}

// leftAfter sends an UPDATE that sets LAST_INSERT_ID to the units left. The answer to the UPDATE
// returns it, which saves a SELECT under the row's lock. It is plain SQL, because gorm does not
// return the value.
func leftAfter(ctx context.Context, tx *gorm.DB, update string, args ...any) (left int64, ok bool, err error) {
	done, err := tx.Statement.ConnPool.ExecContext(ctx, update, args...)
	if err != nil {
		return 0, false, err
	}
	matched, err := done.RowsAffected()
	if err != nil || matched == 0 {
		return 0, false, err
	}
	left, err = done.LastInsertId()
	return left, true, err
}

// Outcome is the outcome of one sale of a batch.
type Outcome struct {
	Order Order
	Err   error
}

// DecrementBatch makes many sales of one item in one transaction, in their order. A sale that finds
// too few units left is sold out. Later sales that still fit are made.
//
// A sale whose idempotency key has an order fails with [ErrRepeated], and the others are made
// together. Where a single row causes another error, the store makes each sale once more in a
// transaction of its own. Any other error is returned, and is the outcome of all sales.
func (s *Store) DecrementBatch(ctx context.Context, itemID uint64, sales []Sale) ([]Outcome, error) {
	return s.DecrementOpenBatch(ctx, itemID, sales, nil)
}

// DecrementOpenBatch is [Store.DecrementBatch] of a batch that stays open while it waits for the row of
// the item. When the row is locked, it calls join, which returns the sales that have come meanwhile. The
// outcomes are those of sales, and then of these. Join may find the orders of keys in the transaction. An
// error of join is that of the batch.
func (s *Store) DecrementOpenBatch(ctx context.Context, itemID uint64, sales []Sale, join func(find FindOrders) ([]Sale, error)) ([]Outcome, error) {
	outcomes, sales, err := s.decrementBatch(ctx, itemID, sales, join)
	switch {
	case len(sales) > 1 && isOneRows(err):
		return s.decrementParts(ctx, itemID, sales, err), nil
	case err != nil:
		return nil, fmt.Errorf("%d orders of item %d: %w", len(sales), itemID, classify(err))
	}
	return outcomes, nil
}

// FindOrders returns the orders that were made under keys.
type FindOrders func(keys []Key) (map[Key]Order, error)

// decrementParts makes the sales of a batch that failed because of a row: those whose key has no
// order together, or each alone if none has one.
func (s *Store) decrementParts(ctx context.Context, itemID uint64, sales []Sale, failed error) []Outcome {
	outcomes := make([]Outcome, len(sales))
	var known map[Key]Order
	if errors.Is(failed, gorm.ErrDuplicatedKey) {
		var keys []Key
		for _, sale := range sales {
			if key := sale.Key(); key.IdempotencyKey != "" {
				keys = append(keys, key)
			}
		}
		if len(keys) > 0 {
			known, _ = s.OrdersByKeys(ctx, keys) // without them, each is made alone
		}
	}
	var rest []Sale
	var at []int
	for i, sale := range sales {
		if _, repeated := known[sale.Key()]; repeated {
			outcomes[i].Err = orderError(sale, failed)
			continue
		}
		rest, at = append(rest, sale), append(at, i)
	}
	size := len(rest)
	if size == len(sales) {
		size = 1
	}
	for ; len(rest) > 0; rest, at = rest[size:], at[size:] {
		made, err := s.DecrementBatch(ctx, itemID, rest[:size])
		for n := range size {
			if err != nil {
				outcomes[at[n]].Err = err
				continue
			}
			outcomes[at[n]] = made[n]
		}
	}
	return outcomes
}

// decrementBatch returns all sales of the batch, also with an error.
func (s *Store) decrementBatch(ctx context.Context, itemID uint64, sales []Sale, join func(FindOrders) ([]Sale, error)) ([]Outcome, []Sale, error) {
	var orders []Order
	var refused []error
	err := s.transaction(ctx, rowTimeout, func(tx *gorm.DB) error {
		sell := func(sales []Sale) error {
			read, not, err := takeBatch(tx.Statement.Context, tx, itemID, sales, orders)
			if err != nil {
				return err
			}
			for i, sale := range sales {
				if not[i] == nil {
					orders = append(orders, newOrder(sale, read, read-sale.Quantity))
					read -= sale.Quantity
				}
			}
			refused = append(refused, not...)
			return nil
		}
		if err := sell(sales); err != nil {
			return err
		}
		if join != nil {
			joined, err := join(func(keys []Key) (map[Key]Order, error) { return ordersByKeys(tx.Statement.Context, tx, keys) })
			sales = slices.Concat(sales, joined)
			if err == nil && len(joined) > 0 {
				err = sell(joined)
			}
			if err != nil {
				return err
			}
		}
		if len(orders) == 0 {
			return nil
		}
		return recordAll(tx, orders)
	})
	if err = s.lookUp(ctx, err, orders...); err != nil {
		return nil, sales, err
	}
	outcomes := make([]Outcome, len(sales))
	for i, sale := range sales {
		if outcomes[i].Err = orderError(sale, refused[i]); refused[i] == nil {
			outcomes[i].Order, orders = orders[0], orders[1:]
		}
	}
	return outcomes, sales, nil
}

// takeBatch takes the units of the sales from the stock. It returns the stock before, and why a sale
// got none. The orders before are those of the transaction that are not yet inserted.
func takeBatch(ctx context.Context, tx *gorm.DB, itemID uint64, sales []Sale, before []Order) (read int64, refused []error, err error) {
	refused = make([]error, len(sales))
	limited := slices.ContainsFunc(sales, func(s Sale) bool { return s.Limit > 0 })
	if sum, ok := total(sales); ok && !limited {
		left, all, err := take(ctx, tx, itemID, sum)
		if err != nil {
			return 0, nil, err
		}
		if all {
			return left + sum, refused, nil
		}
	}
	item, err := lockItem(tx, itemID)
	if err != nil {
		return 0, nil, err
	}
	had, err := hadBefore(tx, itemID, sales, limited)
	if err != nil {
		return 0, nil, err
	}
	for _, order := range before {
		had[unitsKey{itemID, order.Subject}] += order.Quantity
	}
	taken := int64(0)
	for i, sale := range sales {
		of := unitsKey{itemID, sale.Subject}
		switch {
		case sale.Quantity > item.Stock-taken:
			refused[i] = ErrSoldOut
		case sale.Limit > 0 && sale.Quantity > sale.Limit-had[of]:
			refused[i] = ErrLimit
		default:
			taken += sale.Quantity
			had[of] += sale.Quantity
		}
	}
	if taken > 0 {
		_, _, err = take(ctx, tx, itemID, taken)
	}
	return item.Stock, refused, err
}

// hadBefore counts the units that the customers of a batch have already. The item's row is locked.
func hadBefore(tx *gorm.DB, itemID uint64, sales []Sale, limited bool) (map[unitsKey]int64, error) {
	if !limited {
		return map[unitsKey]int64{}, nil
	}
	subjects := make([]string, len(sales))
	for i, sale := range sales {
		subjects[i] = sale.Subject
	}
	return unitsOf(tx, []uint64{itemID}, subjects)
}

// recordAll inserts orders in one statement. Their ids have the order of the slice. The ids are not
// set, because gorm assumes steps of 1, and a cluster counts in steps that it changes.
func recordAll(tx *gorm.DB, orders []Order) error {
	err := tx.Create(&orders).Error
	for i := range orders {
		orders[i].ID = 0
	}
	return err
}

// total adds the quantities, and reports whether the sum fits into an int64.
func total(sales []Sale) (sum int64, ok bool) {
	for _, sale := range sales {
		if sale.Quantity > math.MaxInt64-sum {
			return 0, false
		}
		sum += sale.Quantity
	}
	return sum, true
}

// tooLong is the error for a value that does not fit into its column.
const tooLong = 1406

// isOneRows reports whether an error is one that a single row of a batch can cause.
func isOneRows(err error) bool {
	fromServer, ok := errors.AsType[*mysqldriver.MySQLError](err)
	return errors.Is(err, gorm.ErrDuplicatedKey) || ok && fromServer.Number == tooLong
}

// Key identifies a customer's order: see Sale.IdempotencyKey.
type Key struct{ Subject, IdempotencyKey string }

// Key returns the sale's key. Its IdempotencyKey is empty if the sale has none.
func (s Sale) Key() Key { return Key{s.Subject, s.IdempotencyKey} }

// OrdersByKeys returns the orders that were made under these keys.
func (s *Store) OrdersByKeys(ctx context.Context, keys []Key) (map[Key]Order, error) {
	orders, err := again(ctx, func() (map[Key]Order, error) { return ordersByKeys(ctx, s.db, keys) })
	if err != nil {
		return nil, found(fmt.Sprintf("read orders by %d keys", len(keys)), err)
	}
	return orders, nil
}

func ordersByKeys(ctx context.Context, db *gorm.DB, keys []Key) (map[Key]Order, error) {
	pairs := make([][]any, len(keys))
	for i, k := range keys {
		pairs[i] = []any{k.IdempotencyKey, k.Subject}
	}
	orders, err := all[Order](db.WithContext(ctx), "(idempotency_key, subject) IN ?", pairs)
	byKey := make(map[Key]Order, len(orders))
	for _, o := range orders {
		byKey[Key{o.Subject, *o.IdempotencyKey}] = o
	}
	return byKey, err
}
