package stock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// Read returns the item as it is now. It sends a plain SELECT outside any transaction, which locks
// nothing.
func (s *Store) Read(ctx context.Context, itemID uint64) (Item, error) {
	return again(ctx, func() (Item, error) { return readItem(ctx, s.db, itemID) })
}

func readItem(ctx context.Context, db *gorm.DB, itemID uint64) (Item, error) {
	item, err := one[Item](db.WithContext(ctx), "id = ?", itemID)
	return item, found("read an item", err)
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

// again calls try until it has not lost.
func again[T any](ctx context.Context, try func() (T, error)) (got T, err error) {
	for range tries {
		got, err = try()
		if is, _ := classOf(err); is != lost || ctx.Err() != nil {
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
		return nil, found("read items", err)
	}
	return inOrder(ids, there), nil
}

// readRefused is [Store.ReadLines] for a sale that is refused. It also looks whether units of an item are held.
func (s *Store) readRefused(ctx context.Context, sale Sale) ([]Item, error) {
	if !sale.Holds {
		return s.ReadLines(ctx, sale)
	}
	ids := itemsOf(sale.Lines())
	var there []Item
	var args []any
	for _, id := range ids {
		args = append(args, id, id)
	}
	err := s.read(ctx, &there, "SELECT *, withdrawn IS NULL AND CASE id"+strings.Repeat(" WHEN ? THEN EXISTS (SELECT 1"+liveLines+")", len(ids))+" END AS held FROM items WHERE id IN ?", append(args, ids)...)
	if err == nil && len(there) == 0 && len(ids) == 1 {
		err = ErrNotFound
	}
	if err != nil {
		return nil, found("read items", err)
	}
	return inOrder(ids, there), nil
}

// liveLines are what is held of one item, by entries of an index. The server has to know the id before: of an item that
// it reads first, it reads the lines that are over, too.
const liveLines = " FROM hold_lines FORCE INDEX (hold_lines_live) WHERE item_id = ? AND live_until IS NOT NULL"

// inOrder puts items in the order of ids. An item that is missing has no id.
func inOrder(ids []uint64, there []Item) []Item {
	items := make([]Item, len(ids))
	for _, item := range there {
		items[slices.Index(ids, item.ID)] = item
	}
	return items
}

// View is [Store.Read] that also counts the units that are held.
func (s *Store) View(ctx context.Context, itemID uint64) (Item, error) {
	rows, err := s.view(ctx, []uint64{itemID})
	if err == nil && len(rows) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Item{}, err
	}
	return rows[0], nil
}

func (s *Store) view(ctx context.Context, ids []uint64) (items []Item, err error) {
	items = []Item{}
	if len(ids) > 0 {
		held := "SELECT MIN(item_id) AS item_id, SUM(quantity) AS units" + liveLines
		err = s.read(ctx, &items, "SELECT items.*, COALESCE(h.units, 0) AS held FROM items LEFT JOIN ("+held+strings.Repeat(" UNION ALL "+held, len(ids)-1)+
			") h ON h.item_id = items.id WHERE items.id IN ? ORDER BY items.id", append(anyOf(ids), ids)...)
	}
	return items, found("read items", err)
}

// ViewItems is [Store.Items] that also counts the units that are held.
func (s *Store) ViewItems(ctx context.Context, after uint64, limit int) ([]Item, error) {
	var ids []uint64
	if err := s.read(ctx, &ids, "SELECT id FROM items WHERE id > ? ORDER BY id LIMIT ?", after, limit); err != nil {
		return nil, found("list items", err)
	}
	return s.view(ctx, ids)
}

// found turns gorm's error for no row into ErrNotFound. The server may end a plain read, too.
func found(doing string, err error) error {
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
	return items, found("list items", err)
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
	locking := clause.Locking{Strength: clause.LockingStrengthUpdate}
	item, err := one[Item](tx.Clauses(locking), "id = ?", itemID)
	return item, found("lock an item", err)
}
