package stock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"

	"gorm.io/gorm"
)

// Outcome is the outcome of one sale of a batch.
type Outcome struct {
	Order Order
	Err   error
}

// DecrementBatch makes many sales of one item in one transaction, in their order. A sale that finds
// too few units left is sold out. Later sales that still fit are made.
//
// A sale whose idempotency key has an order fails with a [RepeatedError], and the others are made
// together. Where a single row causes another error, the store makes each sale once more in a
// transaction of its own. Any other error is returned, and is the outcome of all sales.
func (s *Store) DecrementBatch(ctx context.Context, itemID uint64, sales []Sale) ([]Outcome, error) {
	return s.DecrementOpenBatch(ctx, itemID, sales, func() []Sale { return sales })
}

// DecrementOpenBatch is [Store.DecrementBatch] of a batch that stays open while it waits for the row of
// the item. When the row is locked, it calls gather for the sales, whose outcomes it returns: those that were
// likely, and those that have come meanwhile.
func (s *Store) DecrementOpenBatch(ctx context.Context, itemID uint64, likely []Sale, gather func() []Sale) ([]Outcome, error) {
	outcomes, sales, err := s.decrementBatch(ctx, itemID, likely, gather)
	switch {
	case len(sales) > 1 && isOneRows(err):
		return s.decrementEach(ctx, itemID, sales), nil
	case err != nil:
		return nil, fmt.Errorf("%d orders of item %d: %w", len(sales), itemID, classify(err))
	}
	return outcomes, nil
}

// decrementEach makes the sales of a batch that failed because of a row, each in a transaction of its own.
func (s *Store) decrementEach(ctx context.Context, itemID uint64, sales []Sale) []Outcome {
	outcomes := make([]Outcome, len(sales))
	for i, sale := range sales {
		made, err := s.DecrementBatch(ctx, itemID, []Sale{sale})
		if outcomes[i].Err = err; err == nil {
			outcomes[i] = made[0]
		}
	}
	return outcomes
}

// decrementBatch returns the sales that it gathered, also with an error. It takes the units of the likely sales
// as it locks the row, which saves a round trip, and corrects that if others are sold.
//
// The INSERT finds keys that have orders. All earlier sales of the item can be seen under its row, so the
// next INSERT is of the others. Only of another item, an order may be newer than what the transaction sees. A look that
// locks finds it, and is the second: it locks gaps. While batches meet such keys, they are looked up first: an INSERT
// that fails locks gaps of the index, and batches of other items could meet there.
func (s *Store) decrementBatch(ctx context.Context, itemID uint64, likely []Sale, gather func() []Sale) (outcomes []Outcome, sales []Sale, err error) {
	var orders []Order
	if s.repeats.Load() > 0 {
		likely = nil // the units of repeats would be written, and put back
	}
	err = s.transaction(ctx, RowTimeout, nil, func(tx *gorm.DB) error {
		found, taken, err := lockAndTake(tx, itemID, likely)
		if err != nil {
			return err
		}
		sales = gather()
		had, err := hadBefore(tx, itemID, sales)
		if err != nil {
			return err
		}
		var repeated map[Key]Order
		looks := 0
		lookUp := func() error {
			looks++
			repeated, err = s.ordersByKeys(tx, sales, looks > 1)
			return err
		}
		if s.repeats.Load() > 0 {
			if err := lookUp(); err != nil {
				return err
			}
		}
		for {
			outcomes, orders = outcomesOf(tx, found, sales, maps.Clone(had), repeated)
			if len(orders) == 0 {
				return errNothingSold
			}
			_, err = insert(tx, orders...)
			if _, number := classOf(err); number != duplicate || looks > 1 {
				break
			}
			if err := lookUp(); err != nil {
				return err
			}
		}
		if left := orders[len(orders)-1].StockWritten; err == nil && found-left != taken {
			_, err = setStock(tx, left, "id = ?", itemID)
		}
		return err
	})
	if errors.Is(err, errNothingSold) {
		err, orders = nil, nil
	}
	return outcomes, sales, s.lookUp(ctx, err, orders...)
}

// looksForRepeats is how many looks that find nothing end the time in which batches look for repeats first.
const looksForRepeats = 4

// outcomesOf decides about sales of an item of which so many units were found, and whose customers had so
// many. It returns the orders to be made.
func outcomesOf(tx *gorm.DB, left int64, sales []Sale, had map[unitsKey]int64, repeated map[Key]Order) (outcomes []Outcome, orders []Order) {
	outcomes = make([]Outcome, len(sales))
	for i, sale := range sales {
		of := unitsKey{sale.ItemID, sale.Subject}
		order, again := repeated[sale.Key()]
		switch {
		case again:
			outcomes[i].Err = RepeatedError{order}
		case sale.Quantity > left:
			outcomes[i].Err = orderError(sale, ErrSoldOut)
		case sale.Limit > 0 && sale.Quantity > sale.Limit-had[of]:
			outcomes[i].Err = orderError(sale, ErrLimit)
		default:
			outcomes[i].Order = newOrder(tx, sale, left, left-sale.Quantity)
			orders = append(orders, outcomes[i].Order)
			left -= sale.Quantity
			had[of] += sale.Quantity
		}
	}
	return outcomes, orders
}

// errNothingSold rolls a batch back that has nothing but refusals and repeats: a COMMIT would cost a write.
var errNothingSold = errors.New("stock: nothing of the batch is sold")

// lockAndTake locks the row of an item, and takes the units of sales if there are so many. It returns the
// stock that it found, and how many units it took.
func lockAndTake(tx *gorm.DB, itemID uint64, sales []Sale) (found, taken int64, err error) {
	if taken, ok := total(sales); ok && taken > 0 {
		if left, err := take(tx, itemID, taken); !errors.Is(err, ErrSoldOut) {
			return left + taken, taken, err
		}
	}
	// It changes nothing. It locks the row, and costs the shop less than a SELECT through gorm. The function's value has no
	// sign, and the column of what was oversold takes no other.
	matched, found, err := exec(tx, "UPDATE items SET stock = IF(LAST_INSERT_ID(stock) = 0, stock, stock) WHERE id = ?", itemID)
	if err == nil && matched == 0 {
		err = ErrNotFound
	}
	return found, 0, err
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

// hadBefore counts the units that the customers of a batch have already. The item's row is locked.
func hadBefore(tx *gorm.DB, itemID uint64, sales []Sale) (map[unitsKey]int64, error) {
	var subjects []string
	held := false
	for _, sale := range sales {
		if sale.Limit > 0 {
			subjects, held = append(subjects, sale.Subject), held || sale.Holds
		}
	}
	if len(subjects) == 0 {
		return map[unitsKey]int64{}, nil
	}
	return unitsOf(tx, held, []uint64{itemID}, subjects)
}

// tooLong is the error for a value that does not fit into its column.
const tooLong = 1406

// isOneRows reports whether an error is one that a single row of a batch can cause.
func isOneRows(err error) bool {
	_, number := classOf(err)
	return number == duplicate || number == tooLong
}

// ordersByKeys returns the orders that were made under the keys of sales, with all their rows. To lock them shows
// those that are newer than what the transaction sees.
func (s *Store) ordersByKeys(db *gorm.DB, sales []Sale, lock bool) (map[Key]Order, error) {
	var keys [][]any
	for _, sale := range sales {
		if sale.IdempotencyKey != "" {
			keys = append(keys, []any{sale.IdempotencyKey, sale.Subject})
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	with := ""
	if lock {
		with = forUpdate
	}
	orders, err := wholeOrders(db, "orders o FORCE INDEX (orders_key_subject)", " WHERE (o.idempotency_key, o.subject) IN ?", with, keys)
	if err != nil {
		return nil, err
	}
	byKey := make(map[Key]Order, len(orders))
	for _, order := range orders {
		byKey[Key{order.Subject, *order.IdempotencyKey}] = order
	}
	if s.repeats.Add(-1); len(byKey) > 0 {
		s.repeats.Store(looksForRepeats)
	}
	return byKey, nil
}
