package stock

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"
)

// Order returns the order with this public id, or ErrNotFound.
func (s *Store) Order(ctx context.Context, publicID string) (Order, error) {
	return s.orderWhere(ctx, "public_id = ?", publicID)
}

// OrderByKey returns the order that a subject made under this idempotency key, or ErrNotFound.
func (s *Store) OrderByKey(ctx context.Context, subject, key string) (Order, error) {
	return s.orderWhere(ctx, "idempotency_key = ? AND subject = ?", key, subject)
}

// NewestByKey is [Store.OrderByKey] that waits for a transaction which is making the order. It locks what it reads, and
// so a proxy that splits reads from writes sends it to the primary.
func (s *Store) NewestByKey(ctx context.Context, subject, key string) (Order, error) {
	primary := *s
	primary.db = locking(s.db)
	return primary.OrderByKey(ctx, subject, key)
}

// ClearKeys removes up to limit idempotency keys that are older than ttl, the oldest first. The age
// of a key counts by the clock of the database. ClearKeys returns how many it removed, and the time
// of the youngest one. The next call begins there: the server may still keep the entries of removed
// keys in the index, and would read them again.
//
// It leaves out orders that another transaction has locked, so that shops do not wait for each
// other.
func (s *Store) ClearKeys(ctx context.Context, from time.Time, ttl time.Duration, limit int) (removed int, upTo time.Time, err error) {
	type keyed struct {
		ID      uint64
		KeyedAt time.Time
	}
	var old []keyed
	err = s.Transact(ctx, func(tx Tx) error {
		err := tx.Query(&old, "SELECT id, keyed_at FROM orders FORCE INDEX (orders_keyed_at)"+
			" WHERE keyed_at >= ? AND keyed_at < UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND ORDER BY keyed_at LIMIT ? FOR UPDATE SKIP LOCKED",
			from, ttl.Microseconds(), limit)
		if err != nil || len(old) == 0 {
			return err
		}
		ids := each(old, func(order keyed) any { return order.ID })
		_, _, err = tx.Exec("UPDATE orders SET idempotency_key = NULL, keyed_at = NULL WHERE id IN ("+marks(len(ids))+")", ids...)
		return err
	})
	if err != nil {
		return 0, from, fmt.Errorf("clear idempotency keys: %w", err)
	}
	if len(old) > 0 {
		from = old[len(old)-1].KeyedAt
	}
	return len(old), from, nil
}

func (s *Store) orderWhere(ctx context.Context, where string, args ...any) (Order, error) {
	order, err := again(ctx, func() (Order, error) { return one[Order](s.db.WithContext(ctx).Where(where, args...)) })
	if err != nil {
		return Order{}, found("read an order", err)
	}
	whole, err := s.withLines(ctx, []Order{order})
	if err != nil {
		return Order{}, err
	}
	return whole[0], nil
}

// withLines adds the further rows to orders, of which there must be one.
func (s *Store) withLines(ctx context.Context, orders []Order) ([]Order, error) {
	_, err := again(ctx, func() (struct{}, error) { return struct{}{}, addLines(s.db.WithContext(ctx), orders) })
	if err != nil {
		return nil, found("read the lines of orders", err)
	}
	return orders, nil
}

// addLines adds the further rows to orders. The index that lists the orders of a subject finds them, too.
func addLines(db *gorm.DB, orders []Order) error {
	if len(orders) == 0 {
		return nil
	}
	at := make(map[uint64]*Order, len(orders))
	rows := make([][]any, len(orders))
	for i, order := range orders {
		rows[i], at[order.ID] = []any{order.Subject, order.ID}, &orders[i]
	}
	lines, err := all[Order](db.Order("item_id"), "(subject, line_of) IN ?", rows)
	if err != nil { // it may have come behind some of them
		return err
	}
	for _, line := range lines {
		of := at[*line.LineOf]
		of.More = append(of.More, line)
	}
	return nil
}

// Period is from one time, and until before another one.
type Period struct{ From, Until time.Time }

// OrdersOf returns up to limit orders of a subject that were made in the period, the newest first.
// Before is the public id of one of them, behind which the list goes on, or empty. It is [ErrNotFound]
// if it is none of the subject's.
//
// An order that is made meanwhile moves none of the others: it is before the first page, or missing.
func (s *Store) OrdersOf(ctx context.Context, subject string, in Period, before string, limit int) ([]Order, error) {
	query, err := s.newestOf(ctx, "orders", subject, before, limit)
	if err != nil {
		return nil, err
	}
	orders, err := again(ctx, func() ([]Order, error) {
		return all[Order](query, "line_of IS NULL AND created_at >= ? AND created_at < ?", in.From, in.Until)
	})
	if err != nil || len(orders) == 0 {
		return nil, found("list orders", err)
	}
	return s.withLines(ctx, orders)
}

// newestOf returns a query for up to limit rows of a subject, the newest first. They are behind the one with the public
// id before, if that is not empty. The query can be sent again.
func (s *Store) newestOf(ctx context.Context, table, subject, before string, limit int) (*gorm.DB, error) {
	// Left to itself, MySQL prefers an index of times, and reads the rows of all others in between.
	query := s.db.WithContext(ctx).Table(table+" FORCE INDEX ("+table+"_subject)").Where("subject = ?", subject)
	if before != "" {
		type place struct {
			ID        uint64
			CreatedAt time.Time
		}
		last, err := again(ctx, func() (place, error) {
			return one[place](s.db.WithContext(ctx).Table(table), "public_id = ? AND subject = ?", before, subject)
		})
		if err != nil {
			return nil, found("read the last row of a page", err)
		}
		query = query.Where("created_at <= ? AND (created_at < ? OR id < ?)", last.CreatedAt, last.CreatedAt, last.ID)
	}
	return query.Order("created_at DESC, id DESC").Limit(limit).Session(&gorm.Session{}), nil
}

// ItemOrders returns the rows of all orders that have an item, the oldest first.
func (s *Store) ItemOrders(ctx context.Context, itemID uint64) ([]Order, error) {
	orders, err := all[Order](s.db.WithContext(ctx).Order("id"), "item_id = ?", itemID)
	return orders, found(fmt.Sprint("read the orders of item ", itemID), err)
}
