package stock_test

import (
	"context"
	"crypto/rand"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	mysqldriver "github.com/go-sql-driver/mysql"

	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
	"stocklock/internal/testserver"
)

// failing answers the next statement that has its text with an error of the server, or each. The
// server gets COMMIT only if it delivers.
type failing struct {
	testserver.Statements
	text    string
	deliver bool
	each    bool
	number  atomic.Uint32 // 0 for none
}

func (f *failing) fails(statement string, _ []driver.NamedValue) error {
	number := f.number.Load()
	if number == 0 || !strings.Contains(statement, f.text) {
		return nil
	}
	if !f.each {
		f.number.Store(0)
	}
	return &mysqldriver.MySQLError{Number: uint16(number), Message: "of the test"}
}

func (f *failing) TxCommit(_ context.Context, tx driver.Tx) error {
	err := f.fails("COMMIT", nil)
	if err != nil && !f.deliver {
		return errors.Join(tx.Rollback(), err)
	}
	return errors.Join(err, tx.Commit())
}

func openFailing(t *testing.T, f *failing) *stock.Store {
	t.Helper()
	f.Before = f.fails
	return stocktest.Open(t, stock.WithPool(testserver.Intercept(f)))
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
	item, restocked := stocktest.Item(t, store, 1000), stocktest.Item(t, store, 0)
	sell := map[string]func() error{
		"a sale": func() error { _, err := store.Decrement(t.Context(), one(item)); return err },
		"a batch": func() error {
			_, err := store.DecrementBatch(t.Context(), item.ID, []stock.Sale{one(item)})
			return err
		},
		"a versioned write": func() error {
			read, err := store.Read(t.Context(), item.ID)
			if err == nil {
				_, err = store.WriteVersioned(t.Context(), one(item), read)
			}
			return err
		},
		"a sale under the row's lock": func() error {
			_, err := store.ForUpdate(t.Context(), one(item), func([]stock.Item) error { return nil })
			return err
		},
		"a read": func() error { _, err := store.Read(t.Context(), item.ID); return err },
		"a look at the primary": func() error {
			_, err := stock.AtPrimary(t.Context(), store, func(at *stock.Store) (stock.Item, error) { return at.Read(t.Context(), item.ID) })
			return err
		},
		"a list": func() error { _, err := store.Items(t.Context(), 0, 1); return err },
		"a look for orders": func() error {
			if _, err := store.OrderByKey(t.Context(), "", "key"); !errors.Is(err, stock.ErrNotFound) {
				return err
			}
			return nil
		},
		"a fence": func() error { return store.RaiseFence(t.Context(), item.ID, 1) },
		"a change": func() error {
			_, err := store.Restock(t.Context(), stock.Author{Subject: "ann", IdempotencyKey: rand.Text()}, restocked.ID, 1)
			return err
		},
		"a new item": func() error {
			_, err := store.Add(t.Context(), stock.Author{Subject: "ann", IdempotencyKey: rand.Text()}, "item", 1)
			return err
		},
	}
	committed := 0
	for _, tt := range []struct {
		what, text string
		deliver    bool
		want       string
		numbers    []uint32
	}{
		{"a sale", "UPDATE", false, conflict, []uint32{1205, 1213, 1020, 3101, 8002, 8022, 8028, 9007}},
		{"a sale", "UPDATE", false, unavailable, []uint32{1040, 1290, 1317, 1792, 1820, 1862, 3118, 3159, 4151, 9002, 9999}},
		{"a sale", "INSERT", false, refused, []uint32{1406}},
		{"a fence", "UPDATE", false, conflict, []uint32{1213}}, // it is the sale that is repeated
		{"a read", "SELECT", false, "none", []uint32{1213, 8028}},
		{"a list", "SELECT", false, "none", []uint32{1213}},
		{"a look for orders", "SELECT", false, "none", []uint32{1213}},
		{"a change", "UPDATE", false, "none", []uint32{1213}},
		{"a change", "UPDATE", false, conflict, []uint32{1205}}, // it has waited for as long as it may
		{"a change", "COMMIT", false, "none", []uint32{1213, 3101}},
		{"a change", "COMMIT", false, unknown, []uint32{1180}},
		{"a new item", "INSERT", false, "none", []uint32{1213}},
		{"a read", "SELECT", false, unavailable, []uint32{1047, 1820, 9999}},
		{"a batch", "UPDATE", false, conflict, []uint32{1213, 3101}},

		{"a look at the primary", "COMMIT", false, "none", []uint32{1180}}, // what was read was read
		{"a sale", "COMMIT", false, conflict, []uint32{1213, 3101, 8022, 9007}},
		{"a sale", "COMMIT", false, unavailable, []uint32{1290, 1792}},
		{"a sale", "COMMIT", false, unknown, []uint32{1180, 9999}},
		{"a sale", "COMMIT", true, "none", []uint32{1180, 1053, 9002}},
		{"a versioned write", "COMMIT", true, "none", []uint32{1180}},
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
			if tt.deliver {
				committed++
			}
			if f.number.Load() != 0 {
				t.Errorf("%s sent no %s", tt.what, tt.text)
			}
		}
	}
	changes, err := store.Changes(t.Context(), restocked.ID)
	if units := stocktest.Left(t, store, restocked.ID); err != nil || len(changes) != 3 || units != 3 {
		t.Errorf("%d units after the changes %+v, %v, want 3 after three", units, changes, err)
	}
	if orders, err := store.ItemOrders(t.Context(), item.ID); err != nil || len(orders) != committed {
		t.Errorf("%d orders, %v, want the %d that were committed", len(orders), err, committed)
	}
	if store.Deadlocks() == 0 {
		t.Error("no deadlock was counted")
	}
	f.text, f.each = "SELECT", true
	f.number.Store(1213)
	if err := sell["a read"](); kind(err) != conflict {
		t.Errorf("a read that is ended each time: %v, want %s", err, conflict)
	}
	for _, number := range []uint16{1820, 9999} {
		if stock.Advice(fmt.Errorf("sale: %w", &mysqldriver.MySQLError{Number: number})) == "" {
			t.Errorf("no advice for the error %d", number)
		}
	}
}

// TestAnErrorNamesNoCustomer: the server's text has the key, which is a secret, and the customer. A shop logs errors.
func TestAnErrorNamesNoCustomer(t *testing.T) {
	store := stocktest.Open(t)
	sale := one(stocktest.Item(t, store, 2))
	sale.Subject, sale.IdempotencyKey = "ann-the-customer", "key-of-ann"
	if _, err := store.Decrement(t.Context(), sale); err != nil {
		t.Fatal(err)
	}
	_, err := store.Decrement(t.Context(), sale)
	if !errors.Is(err, stock.ErrRepeated) || strings.Contains(err.Error(), sale.IdempotencyKey) || strings.Contains(err.Error(), sale.Subject) {
		t.Errorf("a repeat: %v, want ErrRepeated without the key and the customer", err)
	}
}
