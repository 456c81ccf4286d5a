package stock

import (
	"context"
	"fmt"
)

// Order returns the order with this id.
func (s *Store) Order(ctx context.Context, id uint64) (Order, error) {
	var orders []Order
	if err := s.db.WithContext(ctx).Where("id = ?", id).Limit(1).Find(&orders).Error; err != nil {
		return Order{}, fmt.Errorf("read order %d: %w", id, err)
	}
	if len(orders) == 0 {
		return Order{}, ErrNotFound
	}
	return orders[0], nil
}
