package stock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/google/uuid"
	"gorm.io/gorm"
)

// writeTimeout is how long a transaction that only writes may take until its COMMIT.
const writeTimeout = 5 * time.Second

// RowTimeout is the same for a transaction that also waits for the row. Both go on after the end of the sale's context, so
// a lock around them must be held for as long.
const RowTimeout = 10 * time.Second

// transaction waits for a connection until ctx ends. The transaction itself does not end with ctx,
// because a cancelled COMMIT has an unknown outcome. After its timeout it is rolled back, as soon as the
// statement under way has ended, which the driver's timeouts bound. No statement has a context that ends: the
// driver would watch that, and wake two goroutines for each while the row is locked.
//
// Its error is [ErrUnknown] if the COMMIT was sent and failed, unless the server says that it has
// rolled back. Before the COMMIT, every error means that nothing was done.
func (s *Store) transaction(ctx context.Context, timeout time.Duration, options *sql.TxOptions, fn func(tx *gorm.DB) error) error {
	committing, written := false, true
	err := s.onConnection(ctx, func(conn *sql.Conn) error {
		writing, ends := context.WithoutCancel(ctx), time.Now().Add(timeout+s.extra)
		tx, err := conn.BeginTx(writing, options)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // after a COMMIT it does nothing
		ended := make(chan struct{})
		over := time.AfterFunc(time.Until(ends), func() {
			_ = tx.Rollback()
			close(ended)
		})
		if err = fn(s.on(writing, tx)); !over.Stop() {
			<-ended // else the next BEGIN on the same connection could be faster, and would commit
			return context.DeadlineExceeded
		}
		if time.Now().After(ends) {
			return context.DeadlineExceeded
		}
		if written = !errors.Is(err, errUnwritten); err != nil && written {
			return err
		}
		if committing = true; written {
			s.commits.begin()
		}
		return tx.Commit()
	})
	if committing && written {
		s.commits.end(!noAnswer(err))
	}
	if _, number := classOf(err); number == deadlock {
		s.commits.deadlocks.Add(1)
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

// looking is the context of a look at what a transaction without an answer has done.
func looking(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), lookFor)
}

// lookUp returns err, or nil if it is [ErrUnknown] and the orders of the transaction exist. Their
// public ids were made before the INSERT.
func (s *Store) lookUp(ctx context.Context, err error, orders ...Order) error {
	if !errors.Is(err, ErrUnknown) || len(orders) == 0 {
		return err
	}
	ctx, cancel := looking(ctx)
	defer cancel()
	for {
		// All of their rows or none: they were written in one transaction.
		if _, missing := one[Order](s.db.WithContext(ctx), "public_id = ?", orders[0].PublicID); missing == nil {
			return nil
		}
		if pause(ctx, lookEvery) != nil {
			return err
		}
	}
}

// WriteVersioned sets the stock of each line's item to what was read less the line's quantity, and
// records the order, in one transaction. It is refused with [ErrConflict] if an item was written since
// the read. It compares the stock, too. After the failover to a replica that was behind, the same
// version comes again, with another stock. A sale of more units than were read is refused with
// [ErrSoldOut].
func (s *Store) WriteVersioned(ctx context.Context, sale Sale, read ...Item) (Order, error) {
	return s.writeWhere(ctx, sale, read, condition{ErrConflict, func(line Line, read Item) (string, []any) {
		return "id = ? AND version = ? AND stock = ?", []any{line.ItemID, read.Version, read.Stock}
	}})
}

// RaiseFence raises the item's fence to the token. From then on, every write under an older token
// is refused. A token below the fence is refused with [ErrFenced]. A new holder raises the fence
// before it reads. If only the write compared tokens, an old holder could write between the new
// holder's read and its write.
func (s *Store) RaiseFence(ctx context.Context, itemID uint64, token int64) error {
	matched, _, err := exec(s.db.WithContext(ctx), "UPDATE items SET fence = ? WHERE id = ? AND fence <= ?", token, itemID, token)
	s.leave(err)
	if err != nil {
		return fmt.Errorf("raise the fence of item %d: %w", itemID, classify(err))
	}
	if matched == 1 {
		return nil
	}
	if _, err := s.Read(ctx, itemID); err != nil {
		return err
	}
	return ErrFenced
}

// WriteFenced writes as [Store.WriteVersioned] does, where each item's fence is the line's token. It
// is refused with [ErrFenced] elsewhere. It compares neither version nor stock.
func (s *Store) WriteFenced(ctx context.Context, sale Sale, read ...Item) (Order, error) {
	return s.writeWhere(ctx, sale, read, underFence)
}

// condition is what the row of a line must meet for a write, and the error that refuses the sale
// otherwise.
type condition struct {
	refused error
	where   func(line Line, read Item) (string, []any)
}

var underFence = condition{ErrFenced, func(line Line, _ Item) (string, []any) {
	return "id = ? AND fence = ?", []any{line.ItemID, line.Token}
}}

func (s *Store) writeWhere(ctx context.Context, sale Sale, read []Item, on condition) (Order, error) {
	if err := sale.Check(read); err != nil {
		return Order{}, err
	}
	order, err := s.sell(ctx, writeTimeout, sale, sale.ready, on.write(read))
	return order, orderError(sale, err)
}

// write returns how a line is taken from the stock that was read.
func (on condition) write(read []Item) takeLine {
	return func(tx *gorm.DB, i int, line Line) (int64, error) {
		where, args := on.where(line, read[i])
		matched, err := setStock(tx, read[i].Stock-line.Quantity, where, args...)
		if err == nil && matched == 0 {
			return 0, on.refused
		}
		return read[i].Stock, err
	}
}

// setStock writes the stock of an item and raises its version.
func setStock(tx *gorm.DB, left int64, where string, args ...any) (matched int64, err error) {
	matched, _, err = exec(tx, "UPDATE `items` SET `stock`=?,`version`=version + 1 WHERE "+where, append([]any{left}, args...)...)
	return matched, err
}

// ForUpdate sells under the database's row locks: SELECT ... FOR UPDATE for each line, then decide,
// then UPDATE, in one transaction. Decide gets the locked rows, and refuses the sale by returning an
// error: see [Sale.Check].
func (s *Store) ForUpdate(ctx context.Context, sale Sale, decide func(read []Item) error) (Order, error) {
	var read []Item
	lock := func(tx *gorm.DB) error {
		for _, line := range sale.Lines() {
			item, err := lockItem(tx, line.ItemID)
			if err != nil && !errors.Is(err, ErrNotFound) {
				return err
			}
			read = append(read, item)
		}
		return decide(read)
	}
	order, err := s.sell(ctx, RowTimeout, sale, lock, func(tx *gorm.DB, i int, line Line) (int64, error) {
		_, err := setStock(tx, read[i].Stock-line.Quantity, "id = ?", line.ItemID)
		return read[i].Stock, err
	})
	return order, orderError(sale, err)
}

// takeLine takes the units of a line, which is the i-th, and returns the stock that it found.
type takeLine func(tx *gorm.DB, i int, line Line) (read int64, err error)

// sell makes a sale in a transaction of its own: see [sellIn].
func (s *Store) sell(ctx context.Context, timeout time.Duration, sale Sale, begin func(tx *gorm.DB) error, take takeLine) (order Order, err error) {
	err = s.transaction(ctx, timeout, nil, func(tx *gorm.DB) (err error) {
		order, err = sellIn(tx, sale, begin, take)
		return err
	})
	return order, s.lookUp(ctx, err, order)
}

// sellIn makes a sale in a transaction. It calls begin, and then take for each line. The rows of the
// items come in their order, as for every writer: a basket waits only for rows behind those that it
// has, so no two wait for each other.
func sellIn(tx *gorm.DB, sale Sale, begin func(tx *gorm.DB) error, take takeLine) (Order, error) {
	if err := begin(tx); err != nil {
		return Order{}, err
	}
	lines := sale.Lines()
	read := make([]int64, len(lines))
	for i, line := range lines {
		var err error
		if read[i], err = take(tx, i, line); err != nil {
			return Order{}, err
		}
		if sale.Taken != nil && i < len(lines)-1 {
			sale.Taken()
		}
	}
	return record(tx, sale, read)
}

// record inserts the rows of an order, unless its customer would have too many units. The rows of the
// items are locked. read has the stock that each line found.
func record(tx *gorm.DB, sale Sale, read []int64) (Order, error) {
	if err := sale.checkLimit(tx); err != nil {
		return Order{}, err
	}
	order := newOrder(tx, sale, read[0], read[0]-sale.Quantity)
	var err error
	if order.ID, err = insert(tx, order); err != nil || len(sale.More) == 0 {
		return order, err
	}
	for i, line := range sale.More {
		row := order
		row.ID, row.LineOf, row.PublicID, row.IdempotencyKey, row.More = 0, &order.ID, "", nil, nil
		row.ItemID, row.Quantity, row.Token = line.ItemID, line.Quantity, line.Token
		row.StockRead, row.StockWritten = read[i+1], read[i+1]-line.Quantity
		order.More = append(order.More, row)
	}
	_, err = insert(tx, order.More...)
	return order, err
}

// insert inserts rows of orders in one statement. It returns the id of the first. The others have the order
// of the rows, in steps that a cluster sets.
func insert(tx *gorm.DB, rows ...Order) (id uint64, err error) {
	const columns = "INSERT INTO `orders` (line_of, public_id, subject, item_id, quantity, stock_read, stock_written, token, strategy, run, shop, request_id, created_at, idempotency_key, keyed_at) VALUES "
	const unkeyed, keyed = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)", "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, UTC_TIMESTAMP(6))"
	values := make([]string, len(rows))
	args := make([]any, 0, 14*len(rows))
	for i, o := range rows {
		values[i] = unkeyed
		if o.IdempotencyKey != nil {
			values[i] = keyed
		}
		publicID := any(o.PublicID)
		if o.LineOf != nil {
			publicID = nil
		}
		args = append(args, o.LineOf, publicID, o.Subject, o.ItemID, o.Quantity, o.StockRead, o.StockWritten, o.Token, o.Strategy, o.Run, o.Shop, o.RequestID, o.CreatedAt, o.IdempotencyKey)
	}
	_, last, err := exec(tx, columns+strings.Join(values, ", "), args...)
	return uint64(last), err
}

// checkLimit returns [ErrLimit] if the subject would have more units of an item than the sale's limit.
// It comes when the rows of all items are locked: a snapshot from before would not have the orders
// that were waited for.
func (s Sale) checkLimit(tx *gorm.DB) error {
	if s.Limit == 0 {
		return nil
	}
	had, err := unitsOf(tx, s.Holds, itemsOf(s.Lines()), []string{s.Subject})
	if err != nil {
		return err
	}
	return s.refusedBy(nil, had, nil)
}

// RefusalAtPrimary is [Store.Refusal] by the server that is written to: a replica can be behind.
func (s *Store) RefusalAtPrimary(ctx context.Context, sale Sale) error {
	_, err := AtPrimary(ctx, s, func(at *Store) (struct{}, error) { return struct{}{}, at.Refusal(ctx, sale) })
	return err
}

// Refusal returns why the sale would be refused now, each line with its own reason, or nil. It locks
// nothing.
func (s *Store) Refusal(ctx context.Context, sale Sale) error {
	items, err := s.readRefused(ctx, sale)
	if err != nil {
		return err
	}
	had := map[unitsKey]int64{}
	if sale.Limit > 0 {
		had, err = again(ctx, func() (map[unitsKey]int64, error) {
			return unitsOf(s.db.WithContext(ctx), sale.Holds, itemsOf(sale.Lines()), []string{sale.Subject})
		})
		if err != nil {
			return wrapped("count units", err)
		}
	}
	return sale.refusedBy(items, had, sale.soldOut())
}

func itemsOf(lines []Line) []uint64 {
	return each(lines, func(line Line) uint64 { return line.ItemID })
}

// each has what a function returns of each element.
func each[T, U any](list []T, of func(T) U) []U {
	all := make([]U, len(list))
	for i, one := range list {
		all[i] = of(one)
	}
	return all
}

type unitsKey struct {
	ItemID  uint64
	Subject string
}

// unitsOf counts the units of items that subjects have in orders that stand, and with held in live holds.
func unitsOf(tx *gorm.DB, held bool, items []uint64, subjects []string) (map[unitsKey]int64, error) {
	var rows []struct {
		ItemID  uint64
		Subject string
		Units   int64
	}
	query := "SELECT item_id, subject, SUM(quantity) AS units FROM orders" +
		" WHERE item_id IN ? AND subject IN ? AND cancelled_at IS NULL GROUP BY item_id, subject"
	args := []any{items, subjects}
	if held {
		query += " UNION ALL SELECT item_id, subject, SUM(quantity) FROM hold_lines" +
			" WHERE item_id IN ? AND subject IN ? AND live_until IS NOT NULL GROUP BY item_id, subject"
		args = append(args, items, subjects)
	}
	err := tx.Raw(query, args...).Scan(&rows).Error
	had := make(map[unitsKey]int64, len(rows))
	for _, row := range rows {
		had[unitsKey{row.ItemID, row.Subject}] += row.Units
	}
	return had, err
}

// newOrder returns the first row of the order. It sets the public id before the INSERT. The source of
// random numbers cannot fail.
func newOrder(tx *gorm.DB, sale Sale, read, written int64) Order {
	if sale.OrderID == "" {
		sale.OrderID = uuid.Must(uuid.NewV7()).String()
	}
	order := Order{
		PublicID: sale.OrderID, Subject: sale.Subject, ItemID: sale.ItemID, Quantity: sale.Quantity, StockRead: read, StockWritten: written,
		Token: sale.Token, Strategy: sale.Strategy, Run: sale.Run, Shop: sale.Shop, RequestID: sale.RequestID, CreatedAt: tx.NowFunc(),
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
	if n := len(sale.More); n > 0 {
		return fmt.Errorf("order %d lines from item %d on: %w", n+1, sale.ItemID, classify(err))
	}
	return fmt.Errorf("order %d of item %d: %w", sale.Quantity, sale.ItemID, classify(err))
}

func classify(err error) error {
	// The idempotency key, or a public id which the sale brought: those of the store do not repeat. The server's text has
	// them, and the customer, whom no log may have.
	if _, number := classOf(err); number == duplicate {
		return fmt.Errorf("%w: %w", ErrRepeated, &mysqldriver.MySQLError{Number: number, Message: "duplicate entry"})
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
