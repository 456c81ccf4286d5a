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

// ClearKeys removes up to limit idempotency keys that are older than ttl, the oldest first. The age
// of a key counts by the clock of the database. ClearKeys returns how many it removed, and the time
// of the youngest one. The next call begins there: the server may still keep the entries of removed
// keys in the index, and would read them again.
//
// It leaves out orders that another transaction has locked, so that shops do not wait for each
// other.
func (s *Store) ClearKeys(ctx context.Context, from time.Time, ttl time.Duration, limit int) (removed int, upTo time.Time, err error) {
	var old []struct {
		ID      uint64
		KeyedAt time.Time
	}
	err = s.Transact(ctx, func(tx Tx) error {
		err := tx.Query(&old, "SELECT id, keyed_at FROM orders FORCE INDEX (orders_keyed_at)"+
			" WHERE keyed_at >= ? AND keyed_at < UTC_TIMESTAMP(6) - INTERVAL ? MICROSECOND ORDER BY keyed_at LIMIT ? FOR UPDATE SKIP LOCKED",
			from, ttl.Microseconds(), limit)
		if err != nil || len(old) == 0 {
			return err
		}
		ids := make([]uint64, len(old))
		for i, order := range old {
			ids[i] = order.ID
		}
		return tx.db.Exec("UPDATE orders SET idempotency_key = NULL, keyed_at = NULL WHERE id IN ?", ids).Error
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
	order, err := again(ctx, func() (Order, error) { return gorm.G[Order](s.db).Where(where, args...).Take(ctx) })
	return order, found("read an order", err)
}

// ItemOrders returns all orders of an item, the oldest first.
func (s *Store) ItemOrders(ctx context.Context, itemID uint64) ([]Order, error) {
	orders, err := gorm.G[Order](s.db).Where("item_id = ?", itemID).Order("id").Find(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the orders of item %d: %w", itemID, err)
	}
	return orders, nil
}
