package stock_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/ngrok/sqlmw"

	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
	"stocklock/internal/testserver"
)

// TestWriteIsBlind is the disease: two sales that read the same stock both
// succeed, and the stock has lost one of them.
func TestWriteIsBlind(t *testing.T) {
	store := stocktest.Open(t)
	item := newItem(t, store, 10)
	for range 2 {
		if _, err := store.Write(t.Context(), one(item), item); err != nil {
			t.Fatalf("Write: %v", err)
		}
	}
	if got := stockOf(t, store, item.ID); got != 9 {
		t.Errorf("stock after two blind writes = %d, want 9: one update lost", got)
	}
	// The orders beyond so many units are found, as docs/operate.md has it.
	for units, want := range []int{2, 1, 0} {
		var beyond int
		err := store.Pool().QueryRowContext(t.Context(), `SELECT COUNT(named.public_id) FROM (
			SELECT *, SUM(quantity) OVER (ORDER BY id) AS sold FROM orders WHERE item_id = ? AND cancelled_at IS NULL
		) AS standing JOIN orders AS named ON named.id = COALESCE(standing.line_of, standing.id)
		WHERE standing.sold > ?`, item.ID, units).Scan(&beyond)
		if err != nil || beyond != want {
			t.Errorf("%d orders are beyond %d units, %v, want %d", beyond, units, err, want)
		}
	}
}

// TestGetLockHasTheFormThatProxiesAccept: those that split reads from writes send a plain SELECT to a
// replica, and Vitess refuses a lock function within another function.
func TestGetLockHasTheFormThatProxiesAccept(t *testing.T) {
	f := &failing{text: "SELECT GET_LOCK(?, ?) FOR UPDATE"}
	f.number.Store(1213)
	_, err := openFailing(t, f).GetLock(t.Context(), "lock", time.Second, func(*stock.Store) error { return nil })
	if err == nil {
		t.Error("GET_LOCK was sent in another form")
	}
}

// TestAFenceOnTheConnectionOfALock meets a primary that is one no more.
func TestAFenceOnTheConnectionOfALock(t *testing.T) {
	f := &failing{text: "SET fence"}
	f.number.Store(1290)
	store := openFailing(t, f)
	_, err := store.GetLock(t.Context(), "lock", time.Second, func(on *stock.Store) error { return on.RaiseFence(t.Context(), 1, 1) })
	if !stock.Unreachable(err) {
		t.Errorf("the fence: %v, want the server's refusal", err)
	}
}

// TestGetLockIsExclusive: who asks in vain writes nothing.
func TestGetLockIsExclusive(t *testing.T) {
	store := stocktest.Open(t)
	got, err := store.GetLock(t.Context(), t.Name(), time.Second, func(*stock.Store) error {
		got, err := store.GetLock(t.Context(), t.Name(), time.Millisecond, func(*stock.Store) error {
			t.Error("two connections hold one lock")
			return nil
		})
		if got || err != nil {
			t.Errorf("a second GetLock = %t, %v", got, err)
		}
		return nil
	})
	if !got || err != nil {
		t.Errorf("GetLock = %t, %v", got, err)
	}
}

// TestALockWithoutAnAnswer is free again: its connection ends, and does not go back to the pool.
func TestALockWithoutAnAnswer(t *testing.T) {
	dsn := testserver.Database(t)
	store, other := stocktest.OpenAt(t, dsn, stock.WithPool(testserver.Intercept(noAnswer{}))), stocktest.OpenAt(t, dsn)
	if _, err := store.GetLock(t.Context(), "lock", time.Second, func(*stock.Store) error { return nil }); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a lock whose answer was lost: %v", err)
	}
	got, err := other.GetLock(t.Context(), "lock", 10*time.Second, func(*stock.Store) error { return nil })
	if !got || err != nil {
		t.Errorf("the lock is not free: %v", err)
	}
}

// noAnswer has the server do what it is asked, and loses its answers.
type noAnswer struct{ sqlmw.NullInterceptor }

func (noAnswer) ConnQueryContext(ctx context.Context, conn driver.QueryerContext, query string, args []driver.NamedValue) (context.Context, driver.Rows, error) {
	rows, err := conn.QueryContext(ctx, query, args)
	if err == nil {
		err = errors.Join(io.ErrUnexpectedEOF, rows.Close())
	}
	return ctx, nil, err
}
