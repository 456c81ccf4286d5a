package stock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/google/uuid"
	"gorm.io/gorm"
)

// WriteTimeout is how long a transaction may take that only writes. It goes on when the sale's
// context has ended, so a lock around it must be kept for as long.
const WriteTimeout = 5 * time.Second

// rowTimeout is how long a transaction may take that also waits for other holders of the row.
const rowTimeout = 10 * time.Second

// transaction waits for a connection until ctx ends. The transaction itself does not end with ctx,
// because the outcome of a COMMIT that is cancelled half-way is unknown: it has a timeout of its
// own. Its error is [ErrUnknown] where it has begun and the server did not answer.
func (s *Store) transaction(ctx context.Context, timeout time.Duration, fn func(tx *gorm.DB) error, options ...*sql.TxOptions) error {
	begun := false
	err := s.onConnection(ctx, func(conn *gorm.DB) error {
		writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout+s.extra)
		defer cancel()
		return conn.WithContext(writing).Transaction(func(tx *gorm.DB) error {
			begun = true
			return fn(tx)
		}, options...)
	})
	if begun && noAnswer(err) {
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return err
}

// Write sets the stock to what was read less the sale's quantity, whatever it
// is now, and records the order, in one transaction. This is the unprotected half of a
// read-modify-write: only a lock around the read and the write makes it right.
func (s *Store) Write(ctx context.Context, sale Sale, read Item) (Order, error) {
	return s.writeWhere(ctx, sale, read, ErrNotFound, "id = ?", sale.ItemID)
}

// WriteVersioned is [Store.Write], refused with [ErrConflict] when the item was
// written since it was read.
func (s *Store) WriteVersioned(ctx context.Context, sale Sale, read Item) (Order, error) {
	return s.writeWhere(ctx, sale, read, ErrConflict, "id = ? AND version = ?", sale.ItemID, read.Version)
}

// RaiseFence puts the item's fence up to the token, so that every write under
// an older one is refused from now on. A token below the fence is refused
// itself, with [ErrFenced]. A new holder raises the fence before it reads:
// comparing on the write alone would still let an old holder write between the
// new one's read and write.
func (s *Store) RaiseFence(ctx context.Context, itemID uint64, token int64) error {
	done := s.db.WithContext(ctx).Exec("UPDATE items SET fence = ? WHERE id = ? AND fence <= ?", token, itemID, token)
	if done.Error != nil {
		return fmt.Errorf("raise the fence of item %d: %w", itemID, classify(done.Error))
	}
	if done.RowsAffected == 1 {
		return nil
	}
	if _, err := s.Read(ctx, itemID); err != nil {
		return err
	}
	return ErrFenced
}

// WriteFenced is [Store.Write], refused with [ErrFenced] when the fence is no
// longer the sale's token.
func (s *Store) WriteFenced(ctx context.Context, sale Sale, read Item) (Order, error) {
	return s.writeWhere(ctx, sale, read, ErrFenced, "id = ? AND fence = ?", sale.ItemID, sale.Token)
}

func (s *Store) writeWhere(ctx context.Context, sale Sale, read Item, refused error, where string, args ...any) (Order, error) {
	var order Order
	err := s.transaction(ctx, WriteTimeout, func(tx *gorm.DB) error {
		if err := sale.ready(); err != nil {
			return err
		}
		left := read.Stock - sale.Quantity
		done := tx.Table("items").Where(where, args...).
			Updates(map[string]any{"stock": left, "version": gorm.Expr("version + 1")})
		if done.Error != nil {
			return done.Error
		}
		if done.RowsAffected == 0 {
			return refused
		}
		var err error
		order, err = record(tx, sale, read.Stock, left)
		return err
	})
	return order, orderError(sale, err)
}

// ForUpdate sells with the database's own row lock: SELECT ... FOR UPDATE, then
// decide, then UPDATE, in one transaction. Decide is called with the locked row and
// may refuse the sale by returning an error.
func (s *Store) ForUpdate(ctx context.Context, sale Sale, decide func(read Item) error) (Order, error) {
	var order Order
	err := s.transaction(ctx, rowTimeout, func(tx *gorm.DB) error {
		read, err := lockItem(tx, sale.ItemID)
		if err != nil {
			return err
		}
		if err := decide(read); err != nil {
			return err
		}
		left := read.Stock - sale.Quantity
		if err := tx.Table("items").Where("id = ?", read.ID).
			Updates(map[string]any{"stock": left, "version": gorm.Expr("version + 1")}).Error; err != nil {
			return err
		}
		order, err = record(tx, sale, read.Stock, left)
		return err
	})
	return order, orderError(sale, err)
}

func record(tx *gorm.DB, sale Sale, read, written int64) (Order, error) {
	order := newOrder(sale, read, written)
	return order, tx.Create(&order).Error
}

// newOrder has its public id before it is inserted. The source of random numbers cannot fail.
func newOrder(sale Sale, read, written int64) Order {
	if sale.OrderID == "" {
		sale.OrderID = uuid.Must(uuid.NewV7()).String()
	}
	order := Order{
		PublicID: sale.OrderID, Subject: sale.Subject, ItemID: sale.ItemID, Quantity: sale.Quantity, StockRead: read, StockWritten: written,
		Token: sale.Token, Strategy: sale.Strategy, Run: sale.Run, Shop: sale.Shop, RequestID: sale.RequestID,
	}
	if sale.IdempotencyKey != "" {
		order.IdempotencyKey = &sale.IdempotencyKey
	}
	return order
}

func orderError(sale Sale, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("order %d of item %d: %w", sale.Quantity, sale.ItemID, classify(err))
}

// Errors with which the server says that this transaction lost against another
// one and changed nothing.
const (
	lockWaitTimeout = 1205
	deadlock        = 1213
	recordChanged   = 1020 // MariaDB's innodb_snapshot_isolation
)

func classify(err error) error {
	// The idempotency key, or a public id which the sale brought: those of the store do not repeat.
	if errors.Is(err, gorm.ErrDuplicatedKey) {
		return fmt.Errorf("%w: %w", ErrRepeated, err)
	}
	var fromServer *mysqldriver.MySQLError
	if errors.As(err, &fromServer) {
		switch fromServer.Number {
		case lockWaitTimeout, deadlock, recordChanged:
			return fmt.Errorf("%w: %w", ErrConflict, err)
		}
	}
	return err
}
