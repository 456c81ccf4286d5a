package stock

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"
)

// Order returns the order with this public id, or ErrNotFound.
func (s *Store) Order(ctx context.Context, publicID string) (Order, error) {
	return s.orderWhere(ctx, "o.public_id = ?", "", publicID)
}

// OrderByKey returns the order that a subject made under this idempotency key, or ErrNotFound.
func (s *Store) OrderByKey(ctx context.Context, subject, key string) (Order, error) {
	return s.orderByKey(ctx, s.db, "", subject, key)
}

// NewestByKey is [Store.OrderByKey] that waits for a transaction which is making the order. It locks what it reads, and
// so a proxy that splits reads from writes sends it to the primary.
func (s *Store) NewestByKey(ctx context.Context, subject, key string) (Order, error) {
	return s.orderByKey(ctx, locking(s.db), forUpdate, subject, key)
}

// orderByKey looks for the first row alone, and then reads the order: a sale that is new looks in vain, and the look for all
// rows costs half as much again.
func (s *Store) orderByKey(ctx context.Context, db *gorm.DB, lock, subject, key string) (Order, error) {
	first, err := again(ctx, func() (Order, error) {
		return one[Order](db.WithContext(ctx), "idempotency_key = ? AND subject = ?", key, subject)
	})
	if err != nil {
		return Order{}, wrapped("read an order", err)
	}
	return s.orderWhere(ctx, "o.id = ?", lock, first.ID)
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
			return cmp.Or(err, errUnwritten)
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

func (s *Store) orderWhere(ctx context.Context, where, lock string, args ...any) (Order, error) {
	orders, err := again(ctx, func() ([]Order, error) {
		return wholeOrders(s.db.WithContext(ctx), "orders o", " WHERE "+where, lock, args...)
	})
	if err != nil {
		return Order{}, wrapped("read an order", err)
	}
	if len(orders) == 0 {
		return Order{}, ErrNotFound
	}
	return orders[0], nil
}

const forUpdate = " FOR UPDATE"

// wholeOrders reads first rows, named o, each with the further rows of its order. It is one statement: between two, an
// order may be erased, and a proxy may send each to another replica. A list can have that, and reads its page by itself.
//
// A join costs less than an EXISTS. Most rows have no line_of. Databases take that for a frequent value, and would read
// all orders for many keys.
func wholeOrders(db *gorm.DB, from, where, lock string, args ...any) ([]Order, error) {
	var rows []struct {
		Order `gorm:"embedded"`
		Line  struct { // what it has of its own
			ID, ItemID                               uint64
			Quantity, StockRead, StockWritten, Token int64
			CancelledAt                              *time.Time
		} `gorm:"embedded;embeddedPrefix:l_"`
	}
	err := db.Raw("SELECT o.*, l.id AS l_id, l.item_id AS l_item_id, l.quantity AS l_quantity, l.stock_read AS l_stock_read, l.stock_written AS l_stock_written,"+
		" l.token AS l_token, l.cancelled_at AS l_cancelled_at FROM "+from+" LEFT JOIN orders l FORCE INDEX (orders_subject) ON l.subject = o.subject AND l.line_of = o.id"+
		where+lock, args...).Scan(&rows).Error
	var orders []Order
	at := map[uint64]int{}
	for _, row := range rows {
		i, read := at[row.ID]
		if !read {
			i, orders = len(orders), append(orders, row.Order)
			at[row.ID] = i
		}
		if own, line := row.Line, row.Order; own.ID != 0 {
			line.ID, line.LineOf, line.PublicID, line.IdempotencyKey = own.ID, &row.ID, "", nil
			line.ItemID, line.Quantity, line.StockRead, line.StockWritten = own.ItemID, own.Quantity, own.StockRead, own.StockWritten
			line.Token, line.CancelledAt = own.Token, own.CancelledAt
			orders[i].More = append(orders[i].More, line)
		}
	}
	for _, order := range orders { // an ORDER BY would cost each read a temporary table
		slices.SortFunc(order.More, func(a, b Order) int { return cmp.Compare(a.ItemID, b.ItemID) })
	}
	return orders, err
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
		return nil, wrapped("list orders", err)
	}
	_, err = again(ctx, func() (struct{}, error) { return struct{}{}, addLines(s.db.WithContext(ctx), orders) })
	if err != nil {
		return nil, wrapped("read the lines of orders", err)
	}
	return orders, nil
}

// addLines adds the further rows to orders. The index that lists the orders of a subject finds them, too.
func addLines(db *gorm.DB, orders []Order) error {
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
			return nil, wrapped("read the last row of a page", err)
		}
		query = query.Where("created_at <= ? AND (created_at < ? OR id < ?)", last.CreatedAt, last.CreatedAt, last.ID)
	}
	return query.Order("created_at DESC, id DESC").Limit(limit).Session(&gorm.Session{}), nil
}

// ItemOrders returns the rows of all orders that have an item, the oldest first.
func (s *Store) ItemOrders(ctx context.Context, itemID uint64) ([]Order, error) {
	orders, err := all[Order](s.db.WithContext(ctx).Order("id"), "item_id = ?", itemID)
	return orders, wrapped(fmt.Sprint("read the orders of item ", itemID), err)
}
