package stock

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"time"

	"gorm.io/gorm"
)

// Tx is a transaction in which a strategy sends statements of its own. Its errors are those of
// [Store].
type Tx struct{ db *gorm.DB }

// Transact runs fn in a transaction, and commits it if fn returns nil. The isolation is READ
// COMMITTED, under which a search locks only the rows that it finds. A transaction that has begun
// does not end with ctx.
func (s *Store) Transact(ctx context.Context, fn func(Tx) error) error {
	return s.TransactAt(ctx, sql.LevelReadCommitted, fn)
}

// TransactAt is [Store.Transact] at another isolation. MySQL's own default is REPEATABLE READ.
func (s *Store) TransactAt(ctx context.Context, isolation sql.IsolationLevel, fn func(Tx) error) error {
	return classify(s.transaction(ctx, RowTimeout, &sql.TxOptions{Isolation: isolation}, func(db *gorm.DB) error {
		return fn(Tx{db})
	}))
}

// Within is [Store.Transact] of a function that also returns a value, which Within returns with any error.
func Within[T any](ctx context.Context, s *Store, fn func(Tx) (T, error)) (T, error) {
	return WithinAt(ctx, s, sql.LevelReadCommitted, fn)
}

// WithinAt is [Within] at another isolation: see [Store.TransactAt].
func WithinAt[T any](ctx context.Context, s *Store, isolation sql.IsolationLevel, fn func(Tx) (T, error)) (got T, err error) {
	err = s.TransactAt(ctx, isolation, func(tx Tx) (err error) {
		got, err = fn(tx)
		return err
	})
	return got, err
}

// AtPrimary has look read in a transaction, which a proxy that splits reads from writes sends to the primary. How that ends
// says nothing of what was read. The isolation is the server's own, which is REPEATABLE READ or READ COMMITTED: another
// one costs a statement.
func AtPrimary[T any](ctx context.Context, s *Store, look func(*Store) (T, error)) (T, error) {
	looked := false
	got, err := WithinAt(ctx, s, sql.LevelDefault, func(tx Tx) (got T, err error) {
		primary := *s
		primary.db = tx.db
		got, err = look(&primary)
		looked = err == nil
		return got, cmp.Or(err, errUnwritten)
	})
	if looked {
		err = nil
	}
	return got, err
}

// Exec sends a statement, and returns how many rows it matched and the server's LAST_INSERT_ID.
func (t Tx) Exec(statement string, args ...any) (matched, last int64, err error) {
	return exec(t.db, statement, args...)
}

// exec sends a statement on a connection, in a transaction, or from the pool. gorm does not return the server's LAST_INSERT_ID, and takes a
// quarter of a sale's time to build an INSERT.
func exec(tx *gorm.DB, statement string, args ...any) (matched, last int64, err error) {
	done, err := tx.Statement.ConnPool.ExecContext(tx.Statement.Context, statement, args...)
	if err != nil {
		return 0, 0, err
	}
	if matched, err = done.RowsAffected(); err != nil {
		return 0, 0, err
	}
	last, err = done.LastInsertId()
	return matched, last, err
}

// Query reads the rows of a SELECT into dest, a pointer to a slice.
func (t Tx) Query(dest any, query string, args ...any) error {
	return t.db.Raw(query, args...).Scan(dest).Error
}

// Take takes units from the item's row. It returns the units left, or [ErrSoldOut] if there are too few.
func (t Tx) Take(itemID uint64, quantity int64) (left int64, err error) {
	return take(t.db, itemID, quantity)
}

// Record records the order of a sale of one line. It does not look at the sale's limit.
func (t Tx) Record(sale Sale, read, written int64) (Order, error) {
	order := newOrder(t.db, sale, read, written)
	var err error
	order.ID, err = insert(t.db, order)
	return order, err
}

// on returns gorm's view of a connection or a transaction. It is the one copy of gorm's state that a sale makes, and has
// what gorm takes from a session: gorm's own Connection and Transaction make four, a tenth of the sale's processor time.
func (s *Store) on(ctx context.Context, pool gorm.ConnPool) *gorm.DB {
	db := *s.db
	db.Statement = &gorm.Statement{DB: &db, Context: ctx, ConnPool: pool}
	return &db
}

func (s *Store) onConnection(ctx context.Context, fn func(*sql.Conn) error) (err error) {
	if s.pinned != nil {
		return fn(s.pinned)
	}
	var by *patient
	waiting, cancel := ctx, func() {}
	if wait, ok := ctx.Value(patience{}).(time.Duration); ok {
		by = &patient{ctx: ctx, wait: wait}
		waiting, cancel = context.WithTimeoutCause(context.WithValue(ctx, connecting{}, by), wait, ErrNoConnection)
	}
	defer cancel()
	conn, err := s.pool.Conn(waiting)
	if err != nil {
		s.leave(err)
		if context.Cause(waiting) == ErrNoConnection && !by.connects {
			return ErrNoConnection
		}
		return err
	}
	defer func() {
		_ = conn.Close()
		s.leave(err) // those that are back in the pool
	}()
	return fn(conn)
}

type (
	patience   struct{} // the key of how long a transaction waits for a connection
	connecting struct{} // that of its [patient]
)

// WithPatience returns a context under which each transaction waits so long for a connection of a full pool, and then
// fails with [ErrNoConnection]. It bounds the wait in the queue of a full pool alone. A transaction that makes a new connection
// has the driver's timeout for that, or wait if that is longer. One that has its connection goes on.
func WithPatience(ctx context.Context, wait time.Duration) context.Context {
	return context.WithValue(ctx, patience{}, wait)
}

// patient is a transaction that waits for a connection.
type patient struct {
	ctx      context.Context // without the patience
	wait     time.Duration
	connects bool // itself, and waits for no other transaction
}

// patientConnector makes a connection without the patience of the transaction that needs it. One that is shorter than a
// handshake would give up every connection, and a database that does not answer would look like a full pool.
type patientConnector struct {
	driver.Connector
	timeout time.Duration
}

func (c patientConnector) Connect(ctx context.Context) (driver.Conn, error) {
	if by, ok := ctx.Value(connecting{}).(*patient); ok {
		by.connects = true
		own, cancel := context.WithTimeout(by.ctx, max(by.wait, c.timeout))
		defer cancel()
		ctx = own
	}
	return c.Connector.Connect(ctx)
}
