package stock

// What only strategies of the lab use. A copy of the shop has none of it.

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"math"
	"time"
)

// Write sets the stock of each line's item to what was read less the line's quantity, whatever the
// stock is now, and records the order, in one transaction. This is the unprotected half of a
// read-modify-write. Only a lock around the read and the write makes it right. A sale of more units
// than were read is refused with [ErrSoldOut].
func (s *Store) Write(ctx context.Context, sale Sale, read ...Item) (Order, error) {
	return s.writeWhere(ctx, sale, read, unprotected)
}

var unprotected = condition{ErrNotFound, func(line Line, _ Item) (string, []any) { return "id = ?", []any{line.ItemID} }}

// Read returns the item, and locks nothing. Under REPEATABLE READ, the first read of a transaction
// fixes the snapshot that all later ones read.
func (t Tx) Read(itemID uint64) (Item, error) { return readItem(t.db.Statement.Context, t.db, itemID) }

// Lock returns the item as it is now, whatever the snapshot has, and locks its row until the
// transaction ends.
func (t Tx) Lock(itemID uint64) (Item, error) { return lockItem(t.db, itemID) }

// Write is [Store.Write] in this transaction.
func (t Tx) Write(sale Sale, read ...Item) (Order, error) {
	return t.writeWhere(sale, read, unprotected)
}

// WriteFenced is [Store.WriteFenced] in this transaction.
func (t Tx) WriteFenced(sale Sale, read ...Item) (Order, error) {
	return t.writeWhere(sale, read, underFence)
}

func (t Tx) writeWhere(sale Sale, read []Item, on condition) (Order, error) {
	if err := sale.Check(read); err != nil {
		return Order{}, err
	}
	return sellIn(t.db, sale, sale.ready, on.write(read))
}

// RecordLines records the order of a sale of several lines. Read has the stock that each line found.
func (t Tx) RecordLines(sale Sale, read []int64) (Order, error) { return record(t.db, sale, read) }

// GetLock runs fn while a connection holds MySQL's user-level lock of that name. The store given to
// fn works on that connection, so only the holder can write through it. GetLock reports false if
// the lock was not free in time. The wait is rounded up to whole seconds: MySQL takes 0.4 for 0.
//
// The store given to fn can take the lock again.
func (s *Store) GetLock(ctx context.Context, name string, wait time.Duration, fn func(on *Store) error) (got bool, err error) {
	err = s.onConnection(ctx, func(conn *sql.Conn) error {
		var answer sql.NullInt64 // NULL for a wait that the server ended
		// Proxies send a plain SELECT to a replica. Vitess refuses GET_LOCK within another function.
		if err := conn.QueryRowContext(ctx, "SELECT GET_LOCK(?, ?) FOR UPDATE", name, math.Ceil(wait.Seconds())).Scan(&answer); err != nil {
			_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // it may have the lock: the connection ends with it
			return err
		}
		if got = answer.Int64 == 1; !got {
			return nil
		}
		defer func() { _, _ = conn.ExecContext(context.WithoutCancel(ctx), "DO RELEASE_LOCK(?)", name) }()
		locked := *s
		locked.db, locked.pinned = s.on(ctx, conn), conn
		return fn(&locked)
	})
	return got, err
}
