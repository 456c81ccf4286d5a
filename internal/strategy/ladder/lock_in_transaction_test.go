package ladder

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/strategytest"
	"stocklock/internal/testserver"
)

// heldSale makes two sales of the last unit, by sellers of their own. The first is held at a point until
// the other one has passed another point, or waits in MySQL. It returns how many were made, and what the
// points and their order were.
func heldSale(t *testing.T, d strategy.Deps, s Rung, holdAt, until sale.Point) (sold int, passed []string) {
	t.Helper()
	item := stocktest.Item(t, d.Store, 1)
	var mu sync.Mutex
	note := func(name string, p sale.Point) {
		mu.Lock()
		defer mu.Unlock()
		passed = append(passed, fmt.Sprint(name, " ", p))
	}
	held, reached := make(chan struct{}), make(chan struct{})
	hold, reach := sync.OnceFunc(func() { close(held) }), sync.OnceFunc(func() { close(reached) })
	var selling sync.WaitGroup
	sell := func(name string, at func(sale.Point)) {
		ctx := sale.WithHook(t.Context(), func(_ context.Context, p sale.Point, _ []slog.Attr) {
			note(name, p)
			at(p)
		})
		_, err := strategytest.NewSeller(t, s.Strategy, d).Sell(ctx, stock.Sale{ItemID: item.ID, Quantity: 1, RequestID: name, Shop: "test"})
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			sold++
		case !errors.Is(err, stock.ErrSoldOut) && !errors.Is(err, stock.ErrConflict):
			t.Errorf("the %s sale: %v", name, err)
		}
	}
	selling.Go(func() {
		sell("first", func(p sale.Point) {
			if p != holdAt {
				return
			}
			hold()
			testserver.Await(t, fmt.Sprintf("the point %s, or a wait for the row", until), func() bool {
				select {
				case <-reached:
					return true
				default:
					time.Sleep(stocktest.LockWaitsStay)
					waiting, err := stocktest.LockWaits(t.Context(), d.Store)
					return err == nil && len(waiting) > 0
				}
			})
		})
	})
	<-held
	selling.Go(func() {
		defer reach()
		sell("second", func(p sale.Point) {
			if p == until {
				reach()
			}
		})
	})
	selling.Wait()
	return sold, passed
}

func at(passed []string, point string) int {
	for i, p := range passed {
		if p == point {
			return i
		}
	}
	return -1
}

// TestACommitAfterTheRelease holds a sale between the two. Another one can read meanwhile only where
// nothing but the lock keeps it from that.
func TestACommitAfterTheRelease(t *testing.T) {
	d := strategytest.Deps(t)
	sold, passed := heldSale(t, d, lockInTransaction, sale.Released, sale.Read)
	if released, read, written := at(passed, "first released"), at(passed, "second read"), at(passed, "first written"); sold != 2 || released < 0 || released > read || read > written {
		t.Errorf("lock-in-transaction sold %d of 1: %v", sold, passed)
	}
	if sold, passed := heldSale(t, d, lockThenForUpdate, sale.Released, sale.Read); sold != 1 || at(passed, "second acquired") < 0 || at(passed, "second acquired") > at(passed, "first written") {
		t.Errorf("lock-then-for-update sold %d of 1: %v", sold, passed)
	}
	for _, s := range []Rung{transactionInLock, snapshotBeforeLock} {
		if sold, passed := heldSale(t, d, s, sale.Released, sale.Read); sold != 1 || at(passed, "first written") > at(passed, "first releasing") {
			t.Errorf("%s sold %d of 1: %v", s.Name, sold, passed)
		}
	}
}

// TestASnapshotFromBeforeTheLock has a sale wait for the lock while another one has it.
func TestASnapshotFromBeforeTheLock(t *testing.T) {
	d := strategytest.Deps(t)
	for s, want := range map[string]int{"snapshot-before-lock": 2, "lock-then-for-update": 1, "transaction-in-lock": 1} {
		of, err := ByName(s)
		if err != nil {
			t.Fatal(err)
		}
		sold, passed := heldSale(t, d, of, sale.Read, sale.Waiting)
		if released, read := at(passed, "first releasing"), at(passed, "second read"); sold != want || read < released {
			t.Errorf("%s sold %d of 1, want %d: %v", s, sold, want, passed)
		}
	}
}

// TestSnapshotIsolation has a MariaDB that refuses to write over what has changed since the snapshot.
func TestSnapshotIsolation(t *testing.T) {
	plain := strategytest.Deps(t)
	if version, err := plain.Store.Version(t.Context()); err != nil || !strings.Contains(version, "MariaDB") {
		t.Skipf("%s has no innodb_snapshot_isolation: %v", version, err)
	}
	d := strategytest.Deps(t, "&innodb_snapshot_isolation=ON")
	for _, tt := range []struct {
		Rung
		holdAt, until sale.Point
	}{
		{lockInTransaction, sale.Released, sale.Read},
		{snapshotBeforeLock, sale.Read, sale.Waiting},
		{transactionInLock, sale.Read, sale.Waiting},
		{lockThenForUpdate, sale.Read, sale.Waiting},
		{lockThenForUpdate, sale.Released, sale.Read},
	} {
		if sold, passed := heldSale(t, d, tt.Rung, tt.holdAt, tt.until); sold != 1 {
			t.Errorf("%s, held at %s, sold %d of 1: %v", tt.Name, tt.holdAt, sold, passed)
		}
	}
}

// TestACommitThatFailsAfterTheSection is no sale.
func TestACommitThatFailsAfterTheSection(t *testing.T) {
	fails := false
	d := strategytest.Deps(t)
	d.Wait = time.Second
	d.Store = stocktest.Open(t, stock.WithPool(testserver.Intercept(testserver.Statements{Before: func(statement string, _ []driver.NamedValue) error {
		if statement != "COMMIT" || !fails {
			return nil
		}
		return &mysqldriver.MySQLError{Number: 1213}
	}})))
	for _, s := range []Rung{lockInTransaction, snapshotBeforeLock, lockThenForUpdate, transactionInLock} {
		item := stocktest.Item(t, d.Store, 1)
		seller := strategytest.NewSeller(t, s.Strategy, d)
		fails = true
		order, err := seller.Sell(t.Context(), stock.Sale{ItemID: item.ID, Quantity: 1, RequestID: "r", Shop: "test"})
		if fails = false; !errors.Is(err, stock.ErrConflict) {
			t.Errorf("%s: sold %+v, %v, without a COMMIT, want ErrConflict", s.Name, order, err)
		}
		if _, err := seller.Sell(t.Context(), stock.Sale{ItemID: item.ID, Quantity: 1, RequestID: "r", Shop: "test"}); err != nil {
			t.Errorf("%s: the next sale: %v", s.Name, err)
		}
	}
}

// TestASaleThatFindsNoConnectionIsBusy: those that wait for the lock have one each.
func TestASaleThatFindsNoConnectionIsBusy(t *testing.T) {
	d := strategytest.Deps(t)
	d.Wait = 100 * time.Millisecond
	item := stocktest.Item(t, d.Store, 1)
	var held []driver.Tx
	for range stock.PoolSize {
		tx, err := d.Store.Pool().BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, tx)
	}
	_, err := strategytest.NewSeller(t, lockInTransaction.Strategy, d).Sell(t.Context(), stock.Sale{ItemID: item.ID, Quantity: 1, RequestID: "r", Shop: "test"})
	if !errors.Is(err, strategy.ErrBusy) {
		t.Errorf("a sale without a connection: %v, want ErrBusy", err)
	}
	for _, tx := range held {
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
	}
}
