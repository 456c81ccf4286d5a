package stock

import (
	"context"
	"errors"
	"strings"

	"gorm.io/gorm"
)

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
		return nil, wrapped("read items", err)
	}
	return inOrder(ids, there), nil
}

// liveLines are what is held of one item, by entries of an index. The server has to know the id before: of an item that
// it reads first, it reads the lines that are over, too.
const liveLines = " FROM hold_lines FORCE INDEX (hold_lines_live) WHERE item_id = ? AND live_until IS NOT NULL"

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
	return items, wrapped("read items", err)
}

// ViewItems is [Store.Items] that also counts the units that are held. A page of 500 items is a statement of 60 KB.
func (s *Store) ViewItems(ctx context.Context, after uint64, limit int) ([]Item, error) {
	var ids []uint64
	if err := s.read(ctx, &ids, "SELECT id FROM items WHERE id > ? ORDER BY id LIMIT ?", after, limit); err != nil {
		return nil, wrapped("list items", err)
	}
	return s.view(ctx, ids)
}

// heldOf is how many units of an item are held.
func heldOf(tx *gorm.DB, itemID uint64) (held int64, err error) {
	err = tx.Raw("SELECT COALESCE(SUM(quantity), 0) FROM hold_lines WHERE item_id = ? AND live_until IS NOT NULL", itemID).Scan(&held).Error
	return held, err
}

// ErrHolding: a customer whose data is to be erased has live holds. Release them before, or wait for their end.
var ErrHolding = errors.New("stock: the customer has live reservations")

// holdsNothing returns [ErrHolding] if a customer has live holds.
func (s *Store) holdsNothing(ctx context.Context, subject string) error {
	var live []int
	err := s.read(ctx, &live, "SELECT COUNT(*) FROM holds WHERE subject = ? AND live_until IS NOT NULL", subject)
	if err == nil && live[0] > 0 {
		err = ErrHolding
	}
	return err
}

// erasesHolds are the steps in which [Store.Erase] removes who a customer is from its holds.
var erasesHolds = []func(Tx, string) (int, error){Tx.eraseHolds, Tx.eraseHolder}

func (t Tx) eraseHolds(subject string) (int, error) {
	return t.forgetHolds("holds_subject) WHERE subject = ? AND ended_at IS NOT NULL LIMIT ? FOR UPDATE", subject, eraseBatch)
}

// eraseHolder removes what a customer's holds share.
func (t Tx) eraseHolder(subject string) (int, error) {
	for _, table := range []string{"hold_keys", "hold_customers"} {
		if _, _, err := t.Exec("DELETE FROM "+table+" WHERE subject = ?", subject); err != nil {
			return 0, err
		}
	}
	return 0, nil
}
