package stock

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// Read returns the item as it is now. It sends a plain SELECT, which locks nothing, by itself or in the
// transaction of [AtPrimary].
func (s *Store) Read(ctx context.Context, itemID uint64) (Item, error) {
	return again(ctx, func() (Item, error) { return readItem(ctx, s.db, itemID) })
}

func readItem(ctx context.Context, db *gorm.DB, itemID uint64) (Item, error) {
	item, err := one[Item](db.WithContext(ctx), "id = ?", itemID)
	return item, wrapped("read an item", err)
}

// one reads the row of a query, with the condition.
func one[T any](query *gorm.DB, condition ...any) (row T, err error) {
	err = query.Take(&row, condition...).Error
	return row, err
}

// all reads the rows of a query, with the condition.
func all[T any](query *gorm.DB, condition ...any) (rows []T, err error) {
	err = query.Find(&rows, condition...).Error
	return rows, err
}

// tries is how often a read or a change is tried that the server ends in favour of another transaction.
// A sale is repeated by its strategy, for as long as it may wait.
const tries = 3

// waited is the error of who has waited for a row for as long as it may.
const waited = 1205

// again calls try until it has not lost.
func again[T any](ctx context.Context, try func() (T, error)) (got T, err error) {
	for range tries {
		got, err = try()
		if is, number := classOf(err); is != lost || number == waited || ctx.Err() != nil {
			break
		}
	}
	return got, err
}

// ReadLines returns the items of a sale's lines as they are now, as [Store.Read] does. An item of a
// basket that does not exist has no id: see [Sale.Check].
func (s *Store) ReadLines(ctx context.Context, sale Sale) ([]Item, error) {
	if len(sale.More) == 0 {
		item, err := s.Read(ctx, sale.ItemID)
		return []Item{item}, err
	}
	ids := itemsOf(sale.Lines())
	there, err := again(ctx, func() ([]Item, error) { return all[Item](s.db.WithContext(ctx), "id IN ?", ids) })
	if err != nil {
		return nil, wrapped("read items", err)
	}
	return inOrder(ids, there), nil
}

// inOrder puts items in the order of ids. An item that is missing has no id.
func inOrder(ids []uint64, there []Item) []Item {
	items := make([]Item, len(ids))
	for _, item := range there {
		items[slices.Index(ids, item.ID)] = item
	}
	return items
}

// wrapped says in an error what failed, and makes gorm's error for no row ErrNotFound. Nil stays nil.
func wrapped(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, gorm.ErrRecordNotFound):
		return ErrNotFound
	}
	return fmt.Errorf("%s: %w", doing, classify(err))
}

// Items returns up to limit items with an id above after, in the order of their ids.
func (s *Store) Items(ctx context.Context, after uint64, limit int) ([]Item, error) {
	items, err := again(ctx, func() ([]Item, error) {
		return all[Item](s.db.WithContext(ctx).Order("id").Limit(limit), "id > ?", after)
	})
	return items, wrapped("list items", err)
}

// CreateItem adds an item without an entry in the audit, for tests and measurements. A shop uses
// [Store.Add]. CreateItem returns the item with its id.
func (s *Store) CreateItem(ctx context.Context, name string, stock int64) (Item, error) {
	item := Item{Name: name, Stock: stock}
	if err := s.db.WithContext(ctx).Create(&item).Error; err != nil {
		return Item{}, fmt.Errorf("create item: %w", err)
	}
	return item, nil
}

// lockItem reads an item and locks its row until the transaction ends.
func lockItem(tx *gorm.DB, itemID uint64) (Item, error) {
	item, err := one[Item](locking(tx), "id = ?", itemID)
	return item, wrapped("lock an item", err)
}

// locking has gorm lock what it reads, and so read the newest: FOR UPDATE. Of any number of queries.
func locking(db *gorm.DB) *gorm.DB {
	return db.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}).Session(&gorm.Session{})
}
