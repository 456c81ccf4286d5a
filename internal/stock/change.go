package stock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"
)

// Action says what a [Change] did.
type Action string

const (
	Created   Action = "create"
	Renamed   Action = "rename"
	Restocked Action = "restock"
	Corrected Action = "correct"
	Cancelled Action = "cancel"
	// CancelledLine is one line of an order, and Cancelled all that stood.
	CancelledLine Action = "cancel-line"
	// CancelledOwn is Cancelled by the customer. Its author is no member of the staff.
	CancelledOwn Action = "cancel-own"
	Withdrawn    Action = "withdraw"
	Offered      Action = "offer"
)

// Author identifies the author of a change, and the request.
type Author struct {
	Subject        string
	IdempotencyKey string `gorm:"default:null"` // of all changes of a subject under one key, only one is made
	RequestID      string
	Shop           string // the process that serves it
}

// Change is an entry of the audit. It is written in the transaction of the change that it
// describes. The cancellation of an order has an entry for each line. The first one has the key.
type Change struct {
	ID      uint64
	Action  Action
	ItemID  uint64
	OrderID *uint64 // of the order's row that was cancelled, nil for any other action
	Author  `gorm:"embedded"`

	NameBefore, NameAfter   string // before is empty for a new item
	StockBefore, StockAfter int64  // all units, on sale or not; before is 0 for a new item
	Withdrawn               bool   // whether the item is withdrawn afterwards

	Version   int64 // of the item afterwards
	CreatedAt time.Time
}

// Before returns the item as the change found it, where the change left it on sale, or withdrawn.
func (c Change) Before() Item { return c.item(c.NameBefore, c.StockBefore, c.Version-1) }

// Item returns the item as the change left it.
func (c Change) Item() Item { return c.item(c.NameAfter, c.StockAfter, c.Version) }

func (c Change) item(name string, units, version int64) Item {
	item := Item{ID: c.ItemID, Name: name, Stock: units, Version: version}
	if c.Withdrawn {
		item.Stock, item.Withdrawn = 0, &units
	}
	return item
}

// MaxStock is how many units an item may have after a change, with those that are held.
const MaxStock = 1_000_000_000_000

// Besides the errors of a sale, these errors refuse a change. Nothing was written.
var (
	// ErrStale: the item is not as it was seen.
	ErrStale = errors.New("stock: the item is not as it was seen")
	// ErrTooMany: the item would have more than MaxStock units.
	ErrTooMany = errors.New("stock: too many units")
	// ErrCancelled: the order was cancelled before.
	ErrCancelled = errors.New("stock: the order is cancelled")
)

// Add creates an item.
func (s *Store) Add(ctx context.Context, by Author, name string, units int64) (Change, error) {
	entry := Change{Action: Created, Author: by, NameAfter: name, StockAfter: units}
	return s.write(ctx, entry, writeTimeout, func(tx *gorm.DB, entry *Change) error {
		item := Item{Name: name, Stock: units}
		if err := tx.Create(&item).Error; err != nil {
			return err
		}
		entry.ItemID = item.ID
		return nil
	})
}

// Rename gives an item another name. It is refused with [ErrStale] if the item is not as seen.
func (s *Store) Rename(ctx context.Context, by Author, itemID uint64, seen Seen, name string) (Change, error) {
	return s.change(ctx, Change{Action: Renamed, ItemID: itemID, Author: by}, func(_ *gorm.DB, entry *Change, item Item) error {
		if !seen.allows(item) {
			return ErrStale
		}
		entry.NameAfter = name
		return nil
	})
}

// Restock adds units to the item's stock.
func (s *Store) Restock(ctx context.Context, by Author, itemID uint64, units int64) (Change, error) {
	return s.change(ctx, Change{Action: Restocked, ItemID: itemID, Author: by}, func(tx *gorm.DB, entry *Change, item Item) error {
		return entry.setUnits(tx, item.Units()+units)
	})
}

// setUnits sets the units after a change, unless they would be too many with those that are held.
func (c *Change) setUnits(tx *gorm.DB, units int64) error {
	held, err := heldOf(tx, c.ItemID)
	if err == nil && units > MaxStock-held {
		err = ErrTooMany
	}
	c.StockAfter = units
	return err
}

// Correct sets the stock: the counted units without those that are held for customers. It is refused with [ErrStale] if the item is not as
// seen, because the count is then out of date.
func (s *Store) Correct(ctx context.Context, by Author, itemID uint64, seen Seen, units int64) (Change, error) {
	return s.change(ctx, Change{Action: Corrected, ItemID: itemID, Author: by}, func(tx *gorm.DB, entry *Change, item Item) error {
		if !seen.allows(item) {
			return ErrStale
		}
		return entry.setUnits(tx, units)
	})
}

// Offer ends the sale of an item, and keeps its units, where the action is [Withdrawn]. Restocks, corrections and
// cancellations go on. Shops of before schema 19 put on sale what they restock or cancel of it. [Offered] puts it on sale again.
func (s *Store) Offer(ctx context.Context, by Author, itemID uint64, action Action) (Change, error) {
	return s.change(ctx, Change{Action: action, ItemID: itemID, Author: by}, func(_ *gorm.DB, entry *Change, _ Item) error {
		entry.Withdrawn = action == Withdrawn
		return nil
	})
}

// Cancel cancels those of these rows of an order, as it was read, that stand, and puts their units back. If none stands any
// more, it fails with [ErrCancelled]. The action is [Cancelled], [CancelledOwn] or [CancelledLine].
//
// It locks the hold of a paid order, and then the items in the order of their ids, as sales do. It sends as many
// statements for an order of fifty lines as for one of two: the items stay locked meanwhile.
func (s *Store) Cancel(ctx context.Context, by Author, action Action, rows []Order) (Change, error) {
	entry := Change{Action: action, Author: by, CreatedAt: s.db.NowFunc(), ItemID: rows[0].ItemID}
	return s.write(ctx, entry, RowTimeout, func(db *gorm.DB, entry *Change) error {
		tx := Tx{db}
		paid, err := tx.lockConfirmed(rows[0])
		if err != nil {
			return err
		}
		var items []Item
		if err := tx.Query(&items, "SELECT * FROM items FORCE INDEX (PRIMARY) WHERE id IN ? ORDER BY id FOR UPDATE", each(rows, func(o Order) uint64 { return o.ItemID })); err != nil {
			return err
		}
		var standing []Order
		if err := tx.Query(&standing, "SELECT * FROM orders FORCE INDEX (PRIMARY) WHERE id IN ? AND cancelled_at IS NULL ORDER BY id FOR UPDATE", each(rows, func(o Order) uint64 { return o.ID })); err != nil {
			return err
		}
		if len(standing) == 0 {
			return ErrCancelled
		}
		entries, lines, ids := make([]Change, len(standing)), make([]Line, len(standing)), make([]uint64, len(standing))
		for i, row := range standing {
			at := slices.IndexFunc(items, func(item Item) bool { return item.ID == row.ItemID })
			if at < 0 {
				return ErrNotFound
			}
			lines[i], ids[i], entries[i] = Line{ItemID: row.ItemID, Quantity: row.Quantity}, row.ID, *entry
			entries[i].startFrom(items[at])
			entries[i].ItemID, entries[i].OrderID, entries[i].StockAfter = row.ItemID, &ids[i], items[at].Units()+row.Quantity
			if i > 0 {
				entries[i].IdempotencyKey = ""
			}
		}
		if _, _, err := tx.Exec("UPDATE orders FORCE INDEX (PRIMARY) SET cancelled_at = ? WHERE id IN ("+marks(len(ids))+")", append([]any{entry.CreatedAt}, anyOf(ids)...)...); err != nil {
			return err
		}
		if err := tx.putBack(lines); err != nil {
			return err
		}
		if further := entries[1:]; len(further) > 0 {
			if err := db.Create(&further).Error; err != nil {
				return err
			}
		}
		*entry = entries[0]
		return tx.unpay(paid, rows[0])
	})
}

func (s *Store) change(ctx context.Context, entry Change, edit func(tx *gorm.DB, entry *Change, item Item) error) (Change, error) {
	entry.CreatedAt = s.db.NowFunc()
	return s.write(ctx, entry, RowTimeout, func(tx *gorm.DB, entry *Change) error { return changeItem(tx, entry, edit) })
}

// changeItem locks the item's row, calls edit for the new values, and writes the row. It may write
// computed values, because every other write waits for the row. The raised version informs writers
// that do not lock, such as [Store.WriteVersioned].
//
// The fence stays as it is. [Store.WriteFenced] therefore overwrites a change that was made after
// its read. Do not mix the two.
func changeItem(tx *gorm.DB, entry *Change, edit func(tx *gorm.DB, entry *Change, item Item) error) error {
	item, err := lockItem(tx, entry.ItemID)
	if err != nil {
		return err
	}
	entry.startFrom(item)
	if err := edit(tx, entry, item); err != nil {
		return err
	}
	// Without Select, Updates leaves out fields that are zero.
	return tx.Select("name", "stock", "withdrawn", "version").Updates(entry.Item()).Error
}

// startFrom sets what a change finds, and what it leaves if it changes nothing but the version.
func (c *Change) startFrom(item Item) {
	c.NameBefore, c.NameAfter = item.Name, item.Name
	c.StockBefore, c.StockAfter = item.Units(), item.Units()
	c.Withdrawn = item.Withdrawn != nil
	c.Version = item.Version + 1
}

// write calls fn, and writes the entry, in one transaction. A read of it sees what was committed while it waited for rows.
func (s *Store) write(ctx context.Context, entry Change, timeout time.Duration, fn func(tx *gorm.DB, entry *Change) error) (Change, error) {
	made, err := again(ctx, func() (Change, error) {
		entry := entry
		err := s.transaction(ctx, timeout, &sql.TxOptions{Isolation: sql.LevelReadCommitted}, func(tx *gorm.DB) error {
			if err := fn(tx, &entry); err != nil {
				return err
			}
			return tx.Create(&entry).Error
		})
		return entry, err
	})
	return made, wrapped(fmt.Sprintf("%s item %d", made.Action, made.ItemID), err)
}

// ChangeByKey returns the change that a subject made under this idempotency key, or ErrNotFound.
func (s *Store) ChangeByKey(ctx context.Context, subject, key string) (Change, error) {
	change, err := again(ctx, func() (Change, error) {
		return one[Change](s.db.WithContext(ctx), "idempotency_key = ? AND subject = ?", key, subject)
	})
	return change, wrapped("read a change", err)
}

// Changes returns all changes of an item, the oldest first.
func (s *Store) Changes(ctx context.Context, itemID uint64) ([]Change, error) {
	changes, err := all[Change](s.db.WithContext(ctx).Order("id"), "item_id = ?", itemID)
	return changes, wrapped(fmt.Sprint("read the changes of item ", itemID), err)
}
