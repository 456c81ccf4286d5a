package stock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"gorm.io/gorm"
)

// WriteTimeout is how long a transaction that only writes may take. It goes on after the end of the
// sale's context, so a lock around it must be held for as long.
const WriteTimeout = 5 * time.Second

// rowTimeout is how long a transaction that also waits for the row may take.
const rowTimeout = 10 * time.Second

// transaction waits for a connection until ctx ends. The transaction itself does not end with ctx,
// because a cancelled COMMIT has an unknown outcome. It has a timeout of its own.
//
// Its error is [ErrUnknown] if the COMMIT was sent and failed, unless the server says that it has
// rolled back. Before the COMMIT, every error means that nothing was done.
func (s *Store) transaction(ctx context.Context, timeout time.Duration, fn func(tx *gorm.DB) error, options ...*sql.TxOptions) error {
	committing := false
	err := s.onConnection(ctx, func(conn *gorm.DB) error {
		writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout+s.extra)
		defer cancel()
		return conn.WithContext(writing).Transaction(func(tx *gorm.DB) error {
			err := fn(tx)
			if err == nil {
				err = writing.Err() // then it is rolled back already
			}
			if err == nil {
				committing = true
				s.commits.begin()
			}
			return err
		}, options...)
	})
	if committing {
		s.commits.end(!noAnswer(err))
	}
	if committing && err != nil && !rolledBack(err) {
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return err
}

// How long and how often the store looks for the orders of a COMMIT without an answer.
const (
	lookFor   = 2 * time.Second
	lookEvery = 100 * time.Millisecond
)

// lookUp returns err, or nil if it is [ErrUnknown] and the orders of the transaction exist. Their
// public ids were made before the INSERT.
func (s *Store) lookUp(ctx context.Context, err error, orders ...Order) error {
	if !errors.Is(err, ErrUnknown) || len(orders) == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookFor)
	defer cancel()
	for {
		// All of them or none: they were written in one transaction.
		if _, missing := s.Order(ctx, orders[0].PublicID); missing == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(lookEvery):
		}
	}
}

// Write sets the stock to read.Stock less the sale's quantity, whatever the stock is now, and
// records the order, in one transaction. This is the unprotected half of a read-modify-write. Only
// a lock around the read and the write makes it right. A sale of more units than read has is refused
// with [ErrSoldOut].
func (s *Store) Write(ctx context.Context, sale Sale, read Item) (Order, error) {
	return s.write(ctx, sale, read, unprotected(sale))
}

// WriteVersioned is [Store.Write] that is refused with [ErrConflict] if the item was written since
// the read. It compares the stock, too. After the failover to a replica that was behind, the same
// version comes again, with another stock.
func (s *Store) WriteVersioned(ctx context.Context, sale Sale, read Item) (Order, error) {
	return s.write(ctx, sale, read, condition{ErrConflict, "id = ? AND version = ? AND stock = ?", []any{sale.ItemID, read.Version, read.Stock}})
}

// RaiseFence raises the item's fence to the token. From then on, every write under an older token
// is refused. A token below the fence is refused with [ErrFenced]. A new holder raises the fence
// before it reads. If only the write compared tokens, an old holder could write between the new
// holder's read and its write.
func (s *Store) RaiseFence(ctx context.Context, itemID uint64, token int64) error {
	done := s.db.WithContext(ctx).Exec("UPDATE items SET fence = ? WHERE id = ? AND fence <= ?", token, itemID, token)
	s.leave(done.Error)
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

// WriteFenced is [Store.Write] that is refused with [ErrFenced] if the fence is not the sale's
// token any more.
func (s *Store) WriteFenced(ctx context.Context, sale Sale, read Item) (Order, error) {
	return s.write(ctx, sale, read, underFence(sale))
}

// condition is what the row must meet for a write, and the error that refuses the sale otherwise.
type condition struct {
	refused error
	where   string
	args    []any
}

func unprotected(sale Sale) condition { return condition{ErrNotFound, "id = ?", []any{sale.ItemID}} }

func underFence(sale Sale) condition {
	return condition{ErrFenced, "id = ? AND fence = ?", []any{sale.ItemID, sale.Token}}
}

func (s *Store) write(ctx context.Context, sale Sale, read Item, on condition) (Order, error) {
	if _, err := read.Take(sale.Quantity); err != nil {
		return Order{}, err
	}
	var order Order
	err := s.transaction(ctx, WriteTimeout, func(tx *gorm.DB) (err error) {
		order, err = write(tx, sale, read, on)
		return err
	})
	return order, orderError(sale, s.lookUp(ctx, err, order))
}

func write(tx *gorm.DB, sale Sale, read Item, on condition) (Order, error) {
	left, err := read.Take(sale.Quantity)
	if err != nil {
		return Order{}, err
	}
	if err := sale.ready(); err != nil {
		return Order{}, err
	}
	done := tx.Table("items").Where(on.where, on.args...).
		Updates(map[string]any{"stock": left, "version": gorm.Expr("version + 1")})
	if done.Error != nil {
		return Order{}, done.Error
	}
	if done.RowsAffected == 0 {
		return Order{}, on.refused
	}
	return record(tx, sale, read.Stock, left)
}

// ForUpdate sells under the database's row lock: SELECT ... FOR UPDATE, then decide, then UPDATE,
// in one transaction. Decide gets the locked row, and refuses the sale by returning an error.
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
	return order, orderError(sale, s.lookUp(ctx, err, order))
}

func record(tx *gorm.DB, sale Sale, read, written int64) (Order, error) {
	order := newOrder(sale, read, written)
	return order, tx.Create(&order).Error
}

// newOrder sets the public id before the INSERT. The source of random numbers cannot fail.
func newOrder(sale Sale, read, written int64) Order {
	if sale.OrderID == "" {
		sale.OrderID = uuid.Must(uuid.NewV7()).String()
	}
	order := Order{
		PublicID: sale.OrderID, Subject: sale.Subject, ItemID: sale.ItemID, Quantity: sale.Quantity, StockRead: read, StockWritten: written,
		Token: sale.Token, Strategy: sale.Strategy, Run: sale.Run, Shop: sale.Shop, RequestID: sale.RequestID,
	}
	if sale.IdempotencyKey != "" {
		order.IdempotencyKey, order.KeyedAt = &sale.IdempotencyKey, true
	}
	return order
}

func orderError(sale Sale, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("order %d of item %d: %w", sale.Quantity, sale.ItemID, classify(err))
}

func classify(err error) error {
	// The idempotency key, or a public id which the sale brought: those of the store do not repeat.
	if errors.Is(err, gorm.ErrDuplicatedKey) {
		return fmt.Errorf("%w: %w", ErrRepeated, err)
	}
	switch is, _ := classOf(err); {
	case errors.Is(err, ErrUnknown):
	case is == lost:
		return fmt.Errorf("%w: %w", ErrConflict, err)
	case is == unknown:
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return err
}
