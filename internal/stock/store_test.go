package stock_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"log/slog"
	"net"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ngrok/sqlmw"

	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
	"stocklock/internal/testserver"
)

func one(item stock.Item) stock.Sale {
	return stock.Sale{ItemID: item.ID, Quantity: 1, RequestID: "r", Strategy: "test", Shop: "shop"}
}

func TestMigrateBySeveralProcessesAtOnce(t *testing.T) {
	dsn := testserver.Database(t)
	var wg sync.WaitGroup
	for range 5 {
		store := stocktest.OpenAt(t, dsn)
		wg.Go(func() {
			if err := store.Migrate(t.Context(), slog.New(slog.DiscardHandler)); err != nil {
				t.Errorf("migrate: %v", err)
			}
		})
	}
	wg.Wait()
	stocktest.Item(t, stocktest.OpenAt(t, dsn), 1)
}

func TestOpenRejectsWithoutShowingThePassword(t *testing.T) {
	for name, dsn := range map[string]string{
		"no database": "user:s3cret@tcp(127.0.0.1:1)/",
		"no slash":    "user:s3cret@tcp(127.0.0.1:1)",
		"a URL":       "mysql://user:s3cret@127.0.0.1/stocklock?parseTime=nonsense",
	} {
		_, err := stock.Open(dsn)
		if err == nil {
			t.Errorf("%s: Open(%q) succeeded, want an error", name, dsn)
			continue
		}
		if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the error shows the password: %v", name, err)
		}
	}
}

func TestReadOfAnUnknownItem(t *testing.T) {
	if _, err := stocktest.Open(t).Read(t.Context(), 404); !errors.Is(err, stock.ErrNotFound) {
		t.Errorf("Read(404) = %v, want ErrNotFound", err)
	}
}

// TestTheOrdersBeyondSoManyUnits are found, as docs/operate.md has it.
func TestTheOrdersBeyondSoManyUnits(t *testing.T) {
	store := stocktest.Open(t)
	item := stocktest.Item(t, store, 2)
	for range 2 {
		if _, err := store.Decrement(t.Context(), one(item)); err != nil {
			t.Fatal(err)
		}
	}
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

// TestNoWriteMakesTheStockNegative writes what follows from a stock that the sale exceeds.
func TestNoWriteMakesTheStockNegative(t *testing.T) {
	store := stocktest.Open(t)
	item := stocktest.Item(t, store, 0)
	for name, write := range map[string]func(context.Context, stock.Sale, ...stock.Item) (stock.Order, error){
		"WriteVersioned": store.WriteVersioned, "WriteFenced": store.WriteFenced,
	} {
		if _, err := write(t.Context(), one(item), item); !errors.Is(err, stock.ErrSoldOut) {
			t.Errorf("%s of one unit of none = %v, want ErrSoldOut", name, err)
		}
	}
	orders, err := store.ItemOrders(t.Context(), item.ID)
	if got := stocktest.Left(t, store, item.ID); got != 0 || len(orders) != 0 || err != nil {
		t.Errorf("the stock is %d, with the orders %v, %v: want 0 and none", got, orders, err)
	}
}

func TestOrderKeepsWhatItReadAndWrote(t *testing.T) {
	store := stocktest.Open(t)
	item := stocktest.Item(t, store, 10)
	sale := stock.Sale{ItemID: item.ID, Quantity: 3, RequestID: "req", Strategy: "s", Run: "run", Shop: "shop", Token: 7}
	got, err := store.WriteVersioned(t.Context(), sale, item)
	if err != nil {
		t.Fatalf("WriteVersioned: %v", err)
	}
	want := stock.Order{
		ID: got.ID, PublicID: got.PublicID, CreatedAt: got.CreatedAt,
		ItemID: item.ID, Quantity: 3, StockRead: 10, StockWritten: 7, Token: 7, Strategy: "s", Run: "run", Shop: "shop", RequestID: "req",
	}
	if !reflect.DeepEqual(got, want) || got.ID == 0 || len(got.PublicID) != 36 || time.Since(got.CreatedAt).Abs() > time.Minute {
		t.Errorf("Write = %+v, want %+v with an id and the time", got, want)
	}
}

func TestWriteVersionedRefusesWhoReadBeforeAnother(t *testing.T) {
	store := stocktest.Open(t)
	read := stocktest.Item(t, store, 10)
	if _, err := store.WriteVersioned(t.Context(), one(read), read); err != nil {
		t.Fatalf("first WriteVersioned: %v", err)
	}
	if _, err := store.WriteVersioned(t.Context(), one(read), read); !errors.Is(err, stock.ErrConflict) {
		t.Errorf("second WriteVersioned on the same read = %v, want ErrConflict", err)
	}
	if got := stocktest.Left(t, store, read.ID); got != 9 {
		t.Errorf("stock = %d, want 9", got)
	}
}

// TestAVersionThatComesAgain has the version that was read with another stock, as after a failover to
// a replica that was behind and has caught up in numbers.
func TestAVersionThatComesAgain(t *testing.T) {
	store := stocktest.Open(t)
	read := stocktest.Item(t, store, 40)
	if _, err := store.Pool().ExecContext(t.Context(), "UPDATE items SET stock = 30 WHERE id = ?", read.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := store.WriteVersioned(t.Context(), one(read), read); !errors.Is(err, stock.ErrConflict) {
		t.Errorf("WriteVersioned = %v, want ErrConflict", err)
	}
	if got := stocktest.Left(t, store, read.ID); got != 30 {
		t.Errorf("stock = %d, want 30", got)
	}
}

func TestFence(t *testing.T) {
	store := stocktest.Open(t)
	item := stocktest.Item(t, store, 10)
	old, newer := one(item), one(item)
	old.Token, newer.Token = 5, 6

	raise := func(sale stock.Sale) error { return store.RaiseFence(t.Context(), item.ID, sale.Token) }
	if err := raise(old); err != nil {
		t.Fatalf("RaiseFence(5) on a fence of 0: %v", err)
	}
	if err := raise(old); err != nil {
		t.Errorf("RaiseFence(5) again: %v, want none: the same holder may come back", err)
	}
	if err := raise(newer); err != nil {
		t.Fatalf("RaiseFence(6) on a fence of 5: %v", err)
	}
	if err := raise(old); !errors.Is(err, stock.ErrFenced) {
		t.Errorf("RaiseFence(5) on a fence of 6 = %v, want ErrFenced", err)
	}
	if _, err := store.WriteFenced(t.Context(), old, item); !errors.Is(err, stock.ErrFenced) {
		t.Errorf("WriteFenced with token 5 under a fence of 6 = %v, want ErrFenced", err)
	}
	if got := stocktest.Left(t, store, item.ID); got != 10 {
		t.Errorf("stock after a refused write = %d, want 10", got)
	}
	if _, err := store.WriteFenced(t.Context(), newer, item); err != nil {
		t.Errorf("WriteFenced with the fence's own token: %v", err)
	}
	for range 2 {
		if _, err := store.DecrementFenced(t.Context(), newer); err != nil {
			t.Errorf("DecrementFenced with the fence's own token: %v", err)
		}
	}
	if _, err := store.DecrementFenced(t.Context(), old); !errors.Is(err, stock.ErrFenced) {
		t.Errorf("DecrementFenced with token 5 under a fence of 6 = %v, want ErrFenced", err)
	}
	if err := store.RaiseFence(t.Context(), 404, 1); !errors.Is(err, stock.ErrNotFound) {
		t.Errorf("RaiseFence on no item = %v, want ErrNotFound", err)
	}
}

// TestAFenceThatWasLoweredIsNoSoldOut has a fence refuse a sale, and another holder set it below the sale's token before the
// sale looks why.
func TestAFenceThatWasLoweredIsNoSoldOut(t *testing.T) {
	dsn := stocktest.Database(t)
	other := stocktest.OpenAt(t, dsn)
	item := stocktest.Item(t, other, 5)
	if err := other.RaiseFence(t.Context(), item.ID, 30); err != nil {
		t.Fatal(err)
	}
	lower := sync.OnceFunc(func() {
		earlier := one(item)
		earlier.Token = 5
		if _, err := other.DecrementOverFence(t.Context(), earlier); err != nil {
			t.Error(err)
		}
	})
	store := stocktest.OpenAt(t, dsn, stock.WithPool(testserver.Intercept(afterRollback{then: lower})))
	refused := one(item)
	refused.Token = 10
	if _, err := store.DecrementFenced(t.Context(), refused); !errors.Is(err, stock.ErrConflict) {
		t.Errorf("of %d units: %v, want ErrConflict", stocktest.Left(t, other, item.ID), err)
	}
}

type afterRollback struct {
	sqlmw.NullInterceptor
	then func()
}

func (a afterRollback) TxRollback(_ context.Context, tx driver.Tx) error {
	defer a.then()
	return tx.Rollback()
}

func TestForUpdateMakesTheSecondWait(t *testing.T) {
	store := stocktest.Open(t)
	item := stocktest.Item(t, store, 10)
	decided := make(chan int64, 2)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			_, err := store.ForUpdate(t.Context(), one(item), func(read []stock.Item) error {
				time.Sleep(20 * time.Millisecond) // long enough for both to be inside, were they let in
				decided <- read[0].Stock
				return nil
			})
			if err != nil {
				t.Errorf("ForUpdate: %v", err)
			}
		})
	}
	wg.Wait()
	if a, b := <-decided, <-decided; a != 10 || b != 9 {
		t.Errorf("the two read %d and %d, want 10 and 9", a, b)
	}
}

func TestForUpdateRefusedWritesNothing(t *testing.T) {
	store := stocktest.Open(t)
	item := stocktest.Item(t, store, 1)
	no := errors.New("no")
	if _, err := store.ForUpdate(t.Context(), one(item), func([]stock.Item) error { return no }); !errors.Is(err, no) {
		t.Errorf("ForUpdate = %v, want the refusal", err)
	}
	if got := stocktest.Left(t, store, item.ID); got != 1 {
		t.Errorf("stock = %d, want 1", got)
	}
}

func TestDecrementStopsAtZero(t *testing.T) {
	store := stocktest.Open(t)
	item := stocktest.Item(t, store, 1)
	order, err := store.Decrement(t.Context(), one(item))
	if err != nil || order.StockRead != 1 || order.StockWritten != 0 {
		t.Fatalf("Decrement = read %d, wrote %d, %v, want 1, 0", order.StockRead, order.StockWritten, err)
	}
	if _, err := store.Decrement(t.Context(), one(item)); !errors.Is(err, stock.ErrSoldOut) {
		t.Errorf("Decrement of nothing = %v, want ErrSoldOut", err)
	}
	missing := one(item)
	missing.ItemID = 404
	if _, err := store.Decrement(t.Context(), missing); !errors.Is(err, stock.ErrNotFound) {
		t.Errorf("Decrement of no item = %v, want ErrNotFound", err)
	}
}

// TestRowLockPatience takes the patience for a locked row, five seconds: the
// answer has to come from the server, so that the outcome is known.
func TestRowLockPatience(t *testing.T) {
	store := stocktest.Open(t)
	item := stocktest.Item(t, store, 10)
	_, err := store.ForUpdate(t.Context(), one(item), func([]stock.Item) error {
		_, err := store.Decrement(t.Context(), one(item))
		return err
	})
	if !errors.Is(err, stock.ErrConflict) {
		t.Errorf("Decrement of a row that stays locked = %v, want ErrConflict", err)
	}
	if got := stocktest.Left(t, store, item.ID); got != 10 {
		t.Errorf("stock = %d, want 10", got)
	}
}

// TestPatienceEndsTheWaitForAConnection takes every connection. A sale then fails in time. One that finds a
// free connection does not, and goes on past its time.
func TestPatienceEndsTheWaitForAConnection(t *testing.T) {
	store := stocktest.Open(t)
	item := stocktest.Item(t, store, 2)
	var held []*sql.Conn
	for range stock.PoolSize {
		conn, err := store.Pool().Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, conn)
	}
	const wait = 50 * time.Millisecond
	patient := stock.WithPatience(t.Context(), wait)
	if _, err := store.Decrement(patient, one(item)); !errors.Is(err, stock.ErrNoConnection) {
		t.Errorf("without a free connection: %v, want ErrNoConnection", err)
	}
	for _, conn := range held {
		conn.Close()
	}
	time.Sleep(2 * wait) // as after a slow read
	_, err := store.ForUpdate(patient, one(item), func([]stock.Item) error {
		time.Sleep(2 * wait)
		return nil
	})
	if left := stocktest.Left(t, store, item.ID); err != nil || left != 1 {
		t.Errorf("a sale that found a connection: %v, %d left, want 1", err, left)
	}
}

// TestPatienceIsForAFullPool has the patience end while a new connection is made.
func TestPatienceIsForAFullPool(t *testing.T) {
	dsn := stocktest.Database(t)
	item := stocktest.Item(t, stocktest.OpenAt(t, dsn), 1)
	const wait = 20 * time.Millisecond
	for _, test := range []struct {
		name, params string
		then         func(ctx context.Context, c driver.Connector) (driver.Conn, error)
		fails        bool
	}{
		{"slow", "?timeout=1m", func(ctx context.Context, c driver.Connector) (driver.Conn, error) { return c.Connect(ctx) }, false},
		{"unreachable", "?timeout=1m", func(context.Context, driver.Connector) (driver.Conn, error) { return nil, os.ErrDeadlineExceeded }, true},
		{"silent", "?timeout=50ms", func(ctx context.Context, _ driver.Connector) (driver.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := stocktest.OpenAt(t, dsn+test.params, stock.WithConnector(func(c driver.Connector) driver.Connector {
				return connecting{c, func(ctx context.Context) (driver.Conn, error) {
					select {
					case <-time.After(2 * wait):
						return test.then(ctx, c)
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				}}
			}))
			_, err := store.Decrement(stock.WithPatience(t.Context(), wait), one(item))
			if errors.Is(err, stock.ErrNoConnection) || (err != nil) != test.fails || test.fails && !stock.Unreachable(err) {
				t.Errorf("a sale while its connection is made: %v", err)
			}
		})
	}
	t.Run("its client leaves", func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		store := stocktest.OpenAt(t, dsn+"?timeout=1m", stock.WithConnector(func(c driver.Connector) driver.Connector {
			return connecting{c, func(ctx context.Context) (driver.Conn, error) {
				leave()
				<-ctx.Done()
				return nil, ctx.Err()
			}}
		}))
		if _, err := store.Decrement(stock.WithPatience(ctx, time.Minute), one(item)); !errors.Is(err, context.Canceled) {
			t.Errorf("a sale whose client left while its connection was made: %v", err)
		}
	})
}

type connecting struct {
	driver.Connector
	connect func(context.Context) (driver.Conn, error)
}

func (c connecting) Connect(ctx context.Context) (driver.Conn, error) { return c.connect(ctx) }

func TestPingOfNobody(t *testing.T) {
	store := stocktest.OpenAt(t, "user:s3cret@tcp(127.0.0.1:1)/stocklock")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := store.Ping(ctx); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("Ping = %v, want an error without the password", err)
	}
}

// TestTimesAreThoseOfTheDatabase has a database whose clock is far behind.
func TestTimesAreThoseOfTheDatabase(t *testing.T) {
	store := stocktest.OpenAt(t, stocktest.Database(t)+"?timestamp=1000000000")
	if err := store.CanSell(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	order, err := store.Decrement(t.Context(), one(stocktest.Item(t, store, 1)))
	if err != nil {
		t.Fatal(err)
	}
	by := stock.Author{Subject: "ann", IdempotencyKey: "k", RequestID: "r", Shop: "test-shop"}
	change, err := store.Cancel(t.Context(), by, stock.Cancelled, order.Rows())
	if err != nil {
		t.Fatal(err)
	}
	now, err := store.Order(t.Context(), order.PublicID)
	if err != nil {
		t.Fatal(err)
	}
	for what, at := range map[string]time.Time{"sold": now.CreatedAt, "cancelled": *now.CancelledAt, "noted": change.CreatedAt} {
		if behind := at.Sub(time.Unix(1_000_000_000, 0)); behind < 0 || behind > time.Hour {
			t.Errorf("%s at %s, want the clock of the database", what, at)
		}
	}
}

// TestTheClockIsThePrimarys has a proxy that sends plain SELECTs to a replica, whose clock is an hour behind.
func TestTheClockIsThePrimarys(t *testing.T) {
	direct, store := openBehind(t, func() meddler {
		inTx := false
		return func(packet []byte, _, server net.Conn) bool {
			switch text := string(packet[4:]); {
			case strings.HasPrefix(text, "\x03START"):
				inTx = true
			case text == "\x03SELECT UTC_TIMESTAMP(6)" && !inTx:
				text += " - INTERVAL 1 HOUR"
				server.Write(append([]byte{byte(len(text)), 0, 0, 0}, text...))
				return true
			case strings.HasPrefix(text, "\x03ROLLBACK"):
				inTx = false
			}
			return false
		}
	})
	if err := errors.Join(direct.CanSell(t.Context(), true), store.CanSell(t.Context(), true)); err != nil {
		t.Fatal(err)
	}
	if behind := direct.Now().Sub(store.Now()); behind > time.Minute {
		t.Errorf("the store's clock is %s behind the primary's", behind)
	}
}

// TestATransactionThatStaysIdleIsEnded has a shop stop between its UPDATE and its COMMIT.
func TestATransactionThatStaysIdleIsEnded(t *testing.T) {
	dsn := stocktest.Database(t)
	other, stopped := stocktest.OpenAt(t, dsn), stocktest.OpenAt(t, dsn+"?wait_timeout=1", stock.WithExtraTime(time.Hour))
	item := stocktest.Item(t, other, 2)
	err := stopped.Transact(t.Context(), func(tx stock.Tx) error {
		left, err := tx.Take(item.ID, 1)
		if err != nil {
			return err
		}
		testserver.Await(t, "another shop to sell the item", func() bool {
			_, err := other.Decrement(t.Context(), one(item))
			return err == nil
		})
		_, err = tx.Record(one(item), left+1, left)
		return err
	})
	if left := stocktest.Left(t, other, item.ID); !stock.Unreachable(err) || left != 1 {
		t.Errorf("the stopped one: %v, and %d units are left; want its connection ended, and a unit", err, left)
	}
}
