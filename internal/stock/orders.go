package stock

import (
	"context"
	"fmt"
)

// Order returns the order with this id, or ErrNotFound.
func (s *Store) Order(ctx context.Context, id uint64) (Order, error) {
	return s.orderWhere(ctx, "id = ?", id)
}

// OrderByKey returns the order that was made under this idempotency key, or
// ErrNotFound.
func (s *Store) OrderByKey(ctx context.Context, key string) (Order, error) {
	return s.orderWhere(ctx, "idempotency_key = ?", key)
}

func (s *Store) orderWhere(ctx context.Context, where string, arg any) (Order, error) {
	var orders []Order
	if err := s.db.WithContext(ctx).Where(where, arg).Limit(1).Find(&orders).Error; err != nil {
		return Order{}, fmt.Errorf("read order %v: %w", arg, err)
	}
	if len(orders) == 0 {
		return Order{}, ErrNotFound
	}
	return orders[0], nil
}

// ItemOrders returns all orders of an item, the oldest first.
func (s *Store) ItemOrders(ctx context.Context, itemID uint64) ([]Order, error) {
	var orders []Order
	if err := s.db.WithContext(ctx).Where("item_id = ?", itemID).Order("id").Find(&orders).Error; err != nil {
		return nil, fmt.Errorf("read the orders of item %d: %w", itemID, err)
	}
	return orders, nil
}
