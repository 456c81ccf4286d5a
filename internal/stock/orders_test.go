package stock_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/ngrok/sqlmw"

	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
	"stocklock/internal/testserver"
)

// fill inserts n orders, as a shop does that does not know keyed_at. Columns may name further columns,
// with values in SQL.
func fill(t *testing.T, store *stock.Store, item stock.Item, n int, columns, values string) {
	t.Helper()
	_, err := store.Pool().ExecContext(t.Context(), "INSERT INTO orders (item_id, quantity, stock_read, stock_written, strategy, shop, request_id"+columns+")"+
		" WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)"+
		" SELECT ?, 1, 1, 0, 'test', 'old', 'r'"+values+" FROM n a, n b LIMIT ?", item.ID, n)
	if err != nil {
		t.Fatal(err)
	}
}

const (
	keyed     = ", idempotency_key, public_id"
	keyValues = ", UUID(), UUID()"
)

// keysLeft counts the orders that have a key.
func keysLeft(t *testing.T, store *stock.Store) (n int) {
	t.Helper()
	if err := store.Pool().QueryRowContext(t.Context(), "SELECT COUNT(idempotency_key) FROM orders").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// rowsRead counts the rows that the only connection has read.
func rowsRead(t *testing.T, store *stock.Store) (sum int) {
	t.Helper()
	rows, err := store.Pool().QueryContext(t.Context(), "SHOW SESSION STATUS LIKE 'Handler_read%'")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var n int
		if err := rows.Scan(&name, &n); err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}

// locks counts the rows that the transaction of an UPDATE has locked.
type locks struct {
	sqlmw.NullInterceptor
	rows int
}

func (l *locks) ConnExecContext(ctx context.Context, conn driver.ExecerContext, query string, args []driver.NamedValue) (driver.Result, error) {
	done, err := conn.ExecContext(ctx, query, args)
	if err != nil || !strings.HasPrefix(query, "UPDATE orders") {
		return done, err
	}
	time.Sleep(150 * time.Millisecond) // the server keeps this table from one question to the next that comes sooner
	rows, err := conn.(driver.QueryerContext).QueryContext(ctx, "SELECT trx_rows_locked FROM information_schema.innodb_trx WHERE trx_mysql_thread_id = CONNECTION_ID()", nil)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	values := make([]driver.Value, 1)
	if err := rows.Next(values); err != nil {
		return nil, err
	}
	l.rows = int(values[0].(uint64))
	return done, nil
}

// TestAStepOfClearingKeysReadsWhatItClears has orders without keys before, between and behind those
// with keys.
func TestAStepOfClearingKeysReadsWhatItClears(t *testing.T) {
	var locked locks
	store := stocktest.Open(t, stock.WithPoolSize(1), stock.WithPool(testserver.Intercept(&locked)))
	item := stocktest.Item(t, store, 1)
	const expired = ", UTC_TIMESTAMP(6) - INTERVAL 2 HOUR"
	fill(t, store, item, 3000, ", keyed_at", ", NULL")
	fill(t, store, item, 25, keyed+", keyed_at", keyValues+expired)
	fill(t, store, item, 3000, keyed, keyValues)
	fill(t, store, item, 3000, "", "")
	read := rowsRead(t, store)
	own := rowsRead(t, store) - read // what the count itself reads

	from := time.Unix(0, 0)
	for _, want := range []int{10, 10, 5, 0} {
		before := rowsRead(t, store)
		locked.rows = 0
		n, upTo, err := store.ClearKeys(t.Context(), from, time.Hour, 10)
		if n != want || err != nil {
			t.Errorf("cleared %d keys, %v, want %d", n, err, want)
		}
		if read := rowsRead(t, store) - before - own; read > 2*n+10 || locked.rows > 2*n+10 || locked.rows < n {
			t.Errorf("read %d rows and locked %d to clear %d keys", read, locked.rows, n)
		}
		if time.Since(upTo).Round(time.Hour) != 2*time.Hour {
			t.Errorf("the next step begins at %s, want where this one ended, two hours ago", upTo)
		}
		from = upTo
	}
	if left := keysLeft(t, store); left != 3000 {
		t.Errorf("%d keys are left, want those 3000 that are young", left)
	}
}

// TestClearingKeysWaitsForNobody locks an order whose key has expired, and one whose key has not.
func TestClearingKeysWaitsForNobody(t *testing.T) {
	store := stocktest.Open(t)
	item := stocktest.Item(t, store, 1)
	fill(t, store, item, 3, keyed+", keyed_at", keyValues+", UTC_TIMESTAMP(6) - INTERVAL 2 HOUR")
	fill(t, store, item, 1, keyed, keyValues)
	tx, err := store.Pool().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), "UPDATE orders SET cancelled_at = UTC_TIMESTAMP(6) WHERE id IN (1, 4)"); err != nil {
		t.Fatal(err)
	}
	n, _, err := store.ClearKeys(t.Context(), time.Unix(0, 0), time.Hour, 10)
	if n != 2 || err != nil {
		t.Errorf("beside a cancellation: cleared %d keys, %v, want 2", n, err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if n, _, err = store.ClearKeys(t.Context(), time.Unix(0, 0), time.Hour, 10); n != 1 || err != nil {
		t.Errorf("after it: cleared %d keys, %v, want 1", n, err)
	}
}

// TestTheDatabasesClockDecidesTheAgeOfAKey has shops whose clocks are two days slow and fast.
func TestTheDatabasesClockDecidesTheAgeOfAKey(t *testing.T) {
	store := stocktest.Open(t)
	item := stocktest.Item(t, store, 2)
	for _, key := range []string{"", "key"} { // of a shop that knows it
		sale := one(item)
		sale.IdempotencyKey = key
		if _, err := store.Decrement(t.Context(), sale); err != nil {
			t.Fatal(err)
		}
	}
	for _, by := range []string{"- INTERVAL 2 DAY", "+ INTERVAL 2 DAY"} {
		fill(t, store, item, 1, keyed+", created_at", keyValues+", UTC_TIMESTAMP(6) "+by)
	}
	if n, _, err := store.ClearKeys(t.Context(), time.Unix(0, 0), time.Hour, 10); n != 0 || err != nil {
		t.Errorf("cleared %d young keys, %v", n, err)
	}
	time.Sleep(20 * time.Millisecond)
	if n, _, err := store.ClearKeys(t.Context(), time.Unix(0, 0), time.Millisecond, 10); n != 3 || err != nil {
		t.Errorf("cleared %d of 3 old keys, %v", n, err)
	}
}

// TestKeysSurviveTheMigration has orders with and without keys from before the migration, more than it
// takes in one step.
func TestKeysSurviveTheMigration(t *testing.T) {
	store := stocktest.Open(t)
	item := stocktest.Item(t, store, 1)
	fill(t, store, item, 3000, ", keyed_at, created_at", ", NULL, UTC_TIMESTAMP(6) - INTERVAL 2 HOUR")
	fill(t, store, item, 10, keyed+", keyed_at, created_at", keyValues+", NULL, UTC_TIMESTAMP(6) - INTERVAL 2 HOUR")
	fill(t, store, item, 10, keyed+", keyed_at, created_at", keyValues+", NULL, UTC_TIMESTAMP(6)")
	if _, err := store.Pool().ExecContext(t.Context(), "ALTER TABLE orders DROP KEY orders_keyed_at"); err != nil {
		t.Fatal(err)
	}
	backTo(t, store, 9)
	stocktest.Migrate(t, store)
	if n, _, err := store.ClearKeys(t.Context(), time.Unix(0, 0), time.Hour, 100); n != 10 || err != nil {
		t.Errorf("cleared %d keys, %v, want the 10 old ones", n, err)
	}
	if left := keysLeft(t, store); left != 10 {
		t.Errorf("%d keys are left, want the 10 young ones", left)
	}
}

// TestOldShopsSellBesideNewOnes sends one key to a shop of the schema's version 7 and to one of this
// version, in both orders.
func TestOldShopsSellBesideNewOnes(t *testing.T) {
	store := stocktest.Open(t)
	item := stocktest.Item(t, store, 2)
	oldSells := func(key string) error {
		_, err := store.Pool().ExecContext(t.Context(), "INSERT INTO orders (public_id, subject, item_id, quantity, stock_read, stock_written, token,"+
			" strategy, run, shop, request_id, created_at, cancelled_at, idempotency_key) VALUES (UUID(), '', ?, 1, 2, 1, 0, 'conditional', '', 'old', 'r', ?, NULL, ?)",
			item.ID, time.Now().UTC(), key)
		return err
	}
	newSells := func(key string) error {
		sale := one(item)
		sale.IdempotencyKey = key
		_, err := store.Decrement(t.Context(), sale)
		return err
	}
	for name, shops := range map[string][2]func(string) error{"the old one first": {oldSells, newSells}, "the new one first": {newSells, oldSells}} {
		if err := shops[0](name[:11]); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := shops[1](name[:11]); err == nil {
			t.Errorf("%s: the second one sold, too", name)
		}
	}
	if left := keysLeft(t, store); left != 2 {
		t.Errorf("%d orders have a key, want 2", left)
	}
	if err := newSells("the old one"); !errors.Is(err, stock.ErrRepeated) {
		t.Errorf("a repeat at a new shop: %v, want ErrRepeated", err)
	}
}

// TestALimitCountsOnlyWhatStands has a customer with many cancelled orders of an item.
func TestALimitCountsOnlyWhatStands(t *testing.T) {
	store := stocktest.Open(t, stock.WithPoolSize(1))
	item := stocktest.Item(t, store, 10)
	sale := one(item)
	sale.Subject, sale.Limit = "ann", 3
	if _, err := store.Decrement(t.Context(), sale); err != nil {
		t.Fatal(err)
	}
	const copies = " SELECT item_id, quantity, stock_read, stock_written, strategy, shop, request_id, subject, UTC_TIMESTAMP(6) FROM orders"
	for range 10 {
		if _, err := store.Pool().ExecContext(t.Context(), "INSERT INTO orders (item_id, quantity, stock_read, stock_written, strategy, shop, request_id, subject, cancelled_at)"+copies); err != nil {
			t.Fatal(err)
		}
	}
	read := func() (rows int) {
		for _, how := range []string{"Handler_read_next", "Handler_read_rnd_next"} {
			var n int
			if err := store.Pool().QueryRowContext(t.Context(), "SHOW SESSION STATUS LIKE '"+how+"'").Scan(new(string), &n); err != nil {
				t.Fatal(err)
			}
			rows += n
		}
		return rows
	}
	before := read()
	if _, err := store.Decrement(t.Context(), sale); err != nil {
		t.Fatal(err)
	}
	if rows := read() - before; rows > 100 { // SHOW reads some, too
		t.Errorf("a sale with a limit read %d rows, beside 1,023 cancelled orders", rows)
	}
}

// TestAnOrderIsReadByItsIndexes among others of no customer, and as it was made.
func TestAnOrderIsReadByItsIndexes(t *testing.T) {
	store := stocktest.Open(t, stock.WithPoolSize(1))
	sale := one(stocktest.Item(t, store, 5))
	sale.IdempotencyKey, sale.Token, sale.Shop, sale.More = "k", 7, "s", []stock.Line{{ItemID: stocktest.Item(t, store, 9).ID, Quantity: 2, Token: 8}, {ItemID: stocktest.Item(t, store, 3).ID, Quantity: 3, Token: 9}}
	fill(t, store, stock.Item{ID: sale.ItemID}, 3000, keyed, keyValues)
	made, err := store.Decrement(t.Context(), sale)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, store, stock.Item{ID: sale.ItemID}, 3000, keyed, keyValues)
	for how, read := range map[string]func() (stock.Order, error){
		"by its id":  func() (stock.Order, error) { return store.Order(t.Context(), made.PublicID) },
		"by its key": func() (stock.Order, error) { return store.OrderByKey(t.Context(), "", "k") },
		"the newest": func() (stock.Order, error) { return store.NewestByKey(t.Context(), "", "k") },
	} {
		before := rowsRead(t, store)
		got, err := read()
		rows := rowsRead(t, store) - before
		for i := range got.More {
			got.More[i].ID = 0 // which an INSERT of several rows does not say
		}
		if !reflect.DeepEqual(got, made) || err != nil || rows > 100 { // SHOW reads some, too
			t.Errorf("%s: %d rows for %+v, %v, want %+v", how, rows, got, err, made)
		}
	}
}

// cutting ends the first answer that has lines of orders behind its first row.
type cutting struct {
	sqlmw.NullInterceptor
	rows atomic.Int64
}

func (c *cutting) ConnQueryContext(ctx context.Context, conn driver.QueryerContext, query string, args []driver.NamedValue) (context.Context, driver.Rows, error) {
	rows, err := conn.QueryContext(ctx, query, args)
	return context.WithValue(ctx, c, strings.Contains(query, "l.line_of = o.id")), rows, err
}

func (c *cutting) RowsNext(ctx context.Context, rows driver.Rows, dest []driver.Value) error {
	if ctx.Value(c) == true && c.rows.Add(1) == 2 {
		return &mysqldriver.MySQLError{Number: 1213, Message: "of the test"}
	}
	return rows.Next(dest)
}

// TestAnAnswerThatIsCutIsReadAgain, and no line is there twice.
func TestAnAnswerThatIsCutIsReadAgain(t *testing.T) {
	var c cutting
	store := stocktest.Open(t, stock.WithPool(testserver.Intercept(&c)))
	sale := one(stocktest.Item(t, store, 1))
	sale.More = []stock.Line{{ItemID: stocktest.Item(t, store, 1).ID, Quantity: 1}, {ItemID: stocktest.Item(t, store, 1).ID, Quantity: 1}}
	made, err := store.Decrement(t.Context(), sale)
	if err != nil {
		t.Fatal(err)
	}
	if order, err := store.Order(t.Context(), made.PublicID); err != nil || len(order.More) != 2 || c.rows.Load() < 3 {
		t.Errorf("%d further lines after %d rows, %v, want 2", len(order.More), c.rows.Load(), err)
	}
}

// TestErase has a customer with orders of one line and of two, one of which it has cancelled, and with more than are
// erased at once, and another customer.
func TestErase(t *testing.T) {
	store := stocktest.Open(t)
	items := []stock.Item{stocktest.Item(t, store, 10), stocktest.Item(t, store, 10)}
	sell := func(subject, key string, lines int) stock.Order {
		sale := one(items[0])
		sale.Subject, sale.IdempotencyKey, sale.RequestID = subject, key, "of "+subject
		for _, item := range items[1:lines] {
			sale.More = append(sale.More, stock.Line{ItemID: item.ID, Quantity: 1})
		}
		order, err := store.Decrement(t.Context(), sale)
		if err == nil {
			order, err = store.Order(t.Context(), order.PublicID)
		}
		if err != nil {
			t.Fatal(err)
		}
		return order
	}
	erased := []stock.Order{sell("ann", "k-1", 1), sell("ann", "k-2", 2), sell("ann", "", 2)}
	kept := sell("eve", "k-1", 2)
	if _, err := store.Cancel(t.Context(), stock.Author{Subject: "ann", IdempotencyKey: "k", RequestID: "of ann"}, stock.CancelledOwn, erased[1].Rows()); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Cancel(t.Context(), stock.Author{Subject: "ann", IdempotencyKey: "k-staff", RequestID: "of staff"}, stock.Cancelled, erased[2].Rows()); err != nil {
		t.Fatal(err)
	}
	fill(t, store, items[0], 501, ", subject, public_id", ", 'ann', UUID()")
	for _, want := range []int{504, 0} {
		if n, err := store.Erase(t.Context(), "ann"); err != nil || n != want {
			t.Errorf("erased %d orders, %v, want %d", n, err, want)
		}
	}
	for _, order := range erased {
		now, err := store.Order(t.Context(), order.PublicID)
		if err != nil || len(now.More) != len(order.More) {
			t.Errorf("an order of %d lines is %+v, %v", 1+len(order.More), now, err)
		}
		for _, row := range now.Rows() {
			if row.Subject != "" || row.IdempotencyKey != nil || row.RequestID != "" || row.Quantity != 1 {
				t.Errorf("erased: %+v", row)
			}
		}
	}
	if now, err := store.OrderByKey(t.Context(), "eve", "k-1"); err != nil || now.PublicID != kept.PublicID || now.RequestID != "of eve" || len(now.More) != 1 {
		t.Errorf("the order of another customer is %+v, %v", now, err)
	}
	for _, item := range items {
		changes, err := store.Changes(t.Context(), item.ID)
		if err != nil || len(changes) != 2 {
			t.Fatalf("the audit has %+v, %v", changes, err)
		}
		for _, change := range changes {
			if own := change.Action == stock.CancelledOwn; own != (change.Subject == "") || own != (change.RequestID == "") {
				t.Errorf("the audit has %+v, want a customer's cancellation alone erased", change)
			}
		}
	}
	if _, err := store.Erase(t.Context(), ""); err == nil {
		t.Error("the orders of nobody are erased")
	}
}
