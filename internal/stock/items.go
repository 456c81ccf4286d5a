package stock

import (
	"context"
	"fmt"
)

// Read returns the item as it is now: a plain SELECT, outside any transaction,
// which locks nothing.
func (s *Store) Read(ctx context.Context, itemID uint64) (Item, error) {
	var items []Item
	err := s.db.WithContext(ctx).Where("id = ?", itemID).Limit(1).Find(&items).Error
	if err != nil {
		return Item{}, fmt.Errorf("read item %d: %w", itemID, err)
	}
	if len(items) == 0 {
		return Item{}, ErrNotFound
	}
	return items[0], nil
}

// Items returns up to limit items with an id above after, in the order of their
// ids.
func (s *Store) Items(ctx context.Context, after uint64, limit int) ([]Item, error) {
	items := []Item{}
	err := s.db.WithContext(ctx).Where("id > ?", after).Order("id").Limit(limit).Find(&items).Error
	if err != nil {
		return nil, fmt.Errorf("list items: %w", err)
	}
	return items, nil
}

// CreateItem adds an item and returns it with its id.
func (s *Store) CreateItem(ctx context.Context, name string, stock int64) (Item, error) {
	item := Item{Name: name, Stock: stock}
	if err := s.db.WithContext(ctx).Create(&item).Error; err != nil {
		return Item{}, fmt.Errorf("create item: %w", err)
	}
	return item, nil
}
