package stock_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/ngrok/sqlmw"

	"stocklock/internal/stock"
	"stocklock/internal/testserver"
)

// failing answers the next statement that has its text with an error of the server. The server gets
// COMMIT only if it delivers.
type failing struct {
	sqlmw.NullInterceptor
	text    string
	deliver bool
	number  atomic.Uint32 // 0 for none
}

func (f *failing) fails(statement string) error {
	if f.number.Load() == 0 || !strings.Contains(statement, f.text) {
		return nil
	}
	return &mysqldriver.MySQLError{Number: uint16(f.number.Swap(0)), Message: "of the test"}
}

func (f *failing) ConnExecContext(ctx context.Context, conn driver.ExecerContext, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := f.fails(query); err != nil {
		return nil, err
	}
	return conn.ExecContext(ctx, query, args)
}

func (f *failing) ConnQueryContext(ctx context.Context, conn driver.QueryerContext, query string, args []driver.NamedValue) (context.Context, driver.Rows, error) {
	if err := f.fails(query); err != nil {
		return ctx, nil, err
	}
	rows, err := conn.QueryContext(ctx, query, args)
	return ctx, rows, err
}

func (f *failing) TxCommit(_ context.Context, tx driver.Tx) error {
	err := f.fails("COMMIT")
	if err != nil && !f.deliver {
		return errors.Join(tx.Rollback(), err)
	}
	return errors.Join(err, tx.Commit())
}

func openFailing(t *testing.T, f *failing) *stock.Store {
	t.Helper()
	return open(t, stock.WithPool(testserver.Intercept(f)))
}

// Kinds of errors.
const (
	conflict    = "conflict"
	unknown     = "unknown"
	unavailable = "unavailable"
	refused     = "refused"
)

func kind(err error) string {
	switch {
	case errors.Is(err, stock.ErrUnknown):
		return unknown
	case errors.Is(err, stock.ErrConflict):
		return conflict
	case stock.Unreachable(err):
		return unavailable
	case err != nil:
		return refused
	}
	return "none"
}

// TestErrorsOfTheServer has the server answer each statement of a sale with errors.
func TestErrorsOfTheServer(t *testing.T) {
	f := &failing{}
	store := openFailing(t, f)
	item := newItem(t, store, 1000)
	sell := map[string]func() error{
		"a sale": func() error { _, err := store.Decrement(t.Context(), one(item)); return err },
		"a batch": func() error {
			_, err := store.DecrementBatch(t.Context(), item.ID, []stock.Sale{one(item)})
			return err
		},
		"a blind write": func() error { _, err := store.Write(t.Context(), one(item), item); return err },
		"a sale under the row's lock": func() error {
			_, err := store.ForUpdate(t.Context(), one(item), func([]stock.Item) error { return nil })
			return err
		},
		"a read":  func() error { _, err := store.Read(t.Context(), item.ID); return err },
		"a fence": func() error { return store.RaiseFence(t.Context(), item.ID, 1) },
	}
	for _, tt := range []struct {
		what, text string
		deliver    bool
		want       string
		numbers    []uint32
	}{
		{"a sale", "UPDATE", false, conflict, []uint32{1205, 1213, 1020, 3101, 8002, 8022, 8028, 9007}},
		{"a sale", "UPDATE", false, unavailable, []uint32{1040, 1290, 1317, 1792, 1820, 1862, 3118, 3159, 4151, 9002, 9999}},
		{"a sale", "INSERT", false, refused, []uint32{1406}},
		{"a fence", "UPDATE", false, conflict, []uint32{1213}},
		{"a read", "SELECT", false, conflict, []uint32{1213}},
		{"a read", "SELECT", false, unavailable, []uint32{1047, 1820, 9999}},
		{"a batch", "UPDATE", false, conflict, []uint32{1213, 3101}},

		{"a sale", "COMMIT", false, conflict, []uint32{1213, 3101, 8022, 9007}},
		{"a sale", "COMMIT", false, unavailable, []uint32{1290, 1792}},
		{"a sale", "COMMIT", false, unknown, []uint32{1180, 9999}},
		{"a sale", "COMMIT", true, "none", []uint32{1180, 1053, 9002}},
		{"a blind write", "COMMIT", true, "none", []uint32{1180}},
		{"a sale under the row's lock", "COMMIT", true, "none", []uint32{1180}},
		{"a batch", "COMMIT", false, unknown, []uint32{1180}},
		{"a batch", "COMMIT", true, "none", []uint32{1180, 1317}},
	} {
		for _, number := range tt.numbers {
			f.text, f.deliver = tt.text, tt.deliver
			f.number.Store(number)
			err := sell[tt.what]()
			if kind(err) != tt.want {
				t.Errorf("%s, %s answered with %d: %v, want %s", tt.what, tt.text, number, err, tt.want)
			}
			if f.number.Load() != 0 {
				t.Errorf("%s sent no %s", tt.what, tt.text)
			}
		}
	}
	if orders, err := store.ItemOrders(t.Context(), item.ID); err != nil || len(orders) != 7 {
		t.Errorf("%d orders, %v, want the 7 that were committed", len(orders), err)
	}
	for _, number := range []uint16{1820, 9999} {
		if stock.Advice(fmt.Errorf("sale: %w", &mysqldriver.MySQLError{Number: number})) == "" {
			t.Errorf("no advice for the error %d", number)
		}
	}
}

// TestAProxySendsGetLockToThePrimary expects the form that proxies do not take for a plain read.
func TestAProxySendsGetLockToThePrimary(t *testing.T) {
	f := &failing{text: "FOR UPDATE"}
	f.number.Store(1213)
	_, err := openFailing(t, f).GetLock(t.Context(), "lock", time.Second, func(*stock.Store) error { return nil })
	if err == nil {
		t.Error("GET_LOCK was sent in a plain SELECT")
	}
}
