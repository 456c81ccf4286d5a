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

// ClearKeys removes up to limit idempotency keys of the orders from one time until before another.
// It returns their number.
//
// It is plain SQL, because gorm's UPDATE drops ORDER BY and LIMIT.
func (s *Store) ClearKeys(ctx context.Context, from, before time.Time, limit int) (int64, error) {
	done := s.db.WithContext(ctx).Exec(
		"UPDATE orders SET idempotency_key = NULL WHERE created_at >= ? AND created_at < ? AND idempotency_key IS NOT NULL ORDER BY created_at LIMIT ?",
		from, before, limit)
	if done.Error != nil {
		return 0, fmt.Errorf("clear idempotency keys: %w", done.Error)
	}
	return done.RowsAffected, nil
}

func (s *Store) orderWhere(ctx context.Context, where string, args ...any) (Order, error) {
	order, err := gorm.G[Order](s.db).Where(where, args...).Take(ctx)
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
