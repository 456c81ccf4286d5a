package stock_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"sync/atomic"
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
	item := stocktest.Item(t, store, 10)
	for range 2 {
		if _, err := store.Write(t.Context(), one(item), item); err != nil {
			t.Fatalf("Write: %v", err)
		}
	}
	if got := stocktest.Left(t, store, item.ID); got != 9 {
		t.Errorf("stock after two blind writes = %d, want 9: one update lost", got)
	}
	if _, err := store.Write(t.Context(), one(item), stock.Item{ID: item.ID}); !errors.Is(err, stock.ErrSoldOut) {
		t.Errorf("one unit of none = %v, want ErrSoldOut", err)
	}
}

// TestAWriteWithoutAnAnswer was carried out.
func TestAWriteWithoutAnAnswer(t *testing.T) {
	f := &failing{}
	store := openFailing(t, f)
	item := stocktest.Item(t, store, 1)
	f.text, f.deliver = "COMMIT", true
	f.number.Store(1180)
	if _, err := store.Write(t.Context(), one(item), item); err != nil || f.number.Load() != 0 || stocktest.Left(t, store, item.ID) != 0 {
		t.Errorf("Write = %v, want that its order was found", err)
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

// TestATransactionIsOverBeforeTheNext on the connection of a lock begins: a BEGIN would commit it.
func TestATransactionIsOverBeforeTheNext(t *testing.T) {
	slow := &lateRollback{}
	store := stocktest.OpenAt(t, testserver.Database(t), stock.WithExtraTime(-9*time.Second), stock.WithPool(testserver.Intercept(slow)))
	over := false
	_, err := store.GetLock(t.Context(), "lock", time.Second, func(on *stock.Store) error {
		err := on.Transact(t.Context(), func(tx stock.Tx) error {
			var slept []int64
			return tx.Query(&slept, "SELECT SLEEP(1.3)")
		})
		over = slow.over.Load()
		return err
	})
	if !errors.Is(err, context.DeadlineExceeded) || !over {
		t.Errorf("a transaction whose time was over: %v, rolled back: %t", err, over)
	}
}

type lateRollback struct {
	sqlmw.NullInterceptor
	over atomic.Bool
}

func (l *lateRollback) TxRollback(_ context.Context, tx driver.Tx) error {
	time.Sleep(50 * time.Millisecond)
	defer l.over.Store(true)
	return tx.Rollback()
}
