package stock_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"testing"
	"time"

	"github.com/ngrok/sqlmw"

	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
	"stocklock/internal/testserver"
)

// TestTheOutcomeIsUnknownOnlyAfterTheCommit kills MySQL in the middle of a transaction, and sells once
// more without it. [TestCommitWithoutAnAnswer] has the case of an unknown outcome.
func TestTheOutcomeIsUnknownOnlyAfterTheCommit(t *testing.T) {
	mysql, err := testserver.Start(t).MySQL(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	store := stocktest.OpenAt(t, mysql.DSN())
	stocktest.Migrate(t, store)
	item := stocktest.Item(t, store, 3)
	_, err = store.ForUpdate(t.Context(), one(item), func([]stock.Item) error { return mysql.Kill() })
	if errors.Is(err, stock.ErrUnknown) || !stock.Unreachable(err) {
		t.Errorf("a transaction whose server died before the COMMIT: %v, want an error that it is unreachable, and no doubt", err)
	}
	if _, err := store.Decrement(t.Context(), one(item)); errors.Is(err, stock.ErrUnknown) || !stock.Unreachable(err) {
		t.Errorf("a sale without a server: %v, want an error that it is unreachable, and no doubt", err)
	}
}

// TestACommitThatIsNotSent lets the time of a transaction end before its COMMIT.
func TestACommitThatIsNotSent(t *testing.T) {
	store := stocktest.OpenAt(t, testserver.Database(t), stock.WithExtraTime(-9900*time.Millisecond))
	err := store.Transact(t.Context(), func(tx stock.Tx) error {
		var one []int64
		for tx.Query(&one, "SELECT 1") == nil {
		}
		return nil
	})
	if errors.Is(err, stock.ErrUnknown) || !stock.Unreachable(err) {
		t.Errorf("a transaction whose time was over: %v, want an error that the server is unreachable, and no doubt", err)
	}
}

// TestATransactionThatBeginsLate is not committed, either: its time runs from before its BEGIN.
func TestATransactionThatBeginsLate(t *testing.T) {
	store := stocktest.OpenAt(t, testserver.Database(t), stock.WithExtraTime(-9950*time.Millisecond), stock.WithPool(testserver.Intercept(lateBegin{})))
	if err := store.Transact(t.Context(), func(stock.Tx) error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a transaction whose BEGIN took all its time: %v", err)
	}
}

type lateBegin struct{ sqlmw.NullInterceptor }

func (lateBegin) ConnBeginTx(ctx context.Context, conn driver.ConnBeginTx, options driver.TxOptions) (context.Context, driver.Tx, error) {
	time.Sleep(100 * time.Millisecond) // twice the time of the transaction
	tx, err := conn.BeginTx(ctx, options)
	return ctx, tx, err
}

// TestExtraTimeMovesTheEndOfATransaction takes nearly all of the ten seconds away: that shows the sum
// sooner than adding to them.
func TestExtraTimeMovesTheEndOfATransaction(t *testing.T) {
	dsn := testserver.Database(t)
	for extra, ends := range map[time.Duration]bool{-9500 * time.Millisecond: true, 0: false} {
		err := stocktest.OpenAt(t, dsn, stock.WithExtraTime(extra)).Transact(t.Context(), func(tx stock.Tx) error {
			var slept []int64
			return tx.Query(&slept, "SELECT SLEEP(1)")
		})
		if ends != errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second in a transaction with %s more time: %v", extra, err)
		}
	}
}
