package stock_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	mysqldriver "github.com/go-sql-driver/mysql"

	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
)

func wanted(item stock.Item, quantities ...int64) []stock.Sale {
	sales := make([]stock.Sale, len(quantities))
	for i, q := range quantities {
		sales[i] = stock.Sale{ItemID: item.ID, Quantity: q, RequestID: "r" + string(rune('a'+i)), Strategy: "test", Shop: "shop"}
	}
	return sales
}

// check compares the orders in the database with the outcomes, and their chain with the stock.
func check(t *testing.T, store *stock.Store, item stock.Item, outcomes []stock.Outcome, sold ...bool) {
	t.Helper()
	var made []stock.Order
	for i, o := range outcomes {
		switch {
		case sold[i] && o.Err != nil:
			t.Errorf("sale %d: %v", i, o.Err)
		case !sold[i] && !errors.Is(o.Err, stock.ErrSoldOut):
			t.Errorf("sale %d: order %d, %v, want ErrSoldOut", i, o.Order.ID, o.Err)
		case sold[i]:
			made = append(made, o.Order)
		}
	}
	orders, err := store.ItemOrders(t.Context(), item.ID)
	if err != nil || len(orders) != len(made) {
		t.Fatalf("%d orders, %v, want %d", len(orders), err, len(made))
	}
	left := item.Stock
	for i, o := range orders {
		if o.PublicID != made[i].PublicID || made[i].ID != 0 && made[i].ID != o.ID || o.RequestID != made[i].RequestID || o.StockRead != left || o.StockWritten != left-o.Quantity {
			t.Errorf("order %d of %s: read %d, wrote %d, want %d of %s from %d", o.ID, o.RequestID, o.StockRead, o.StockWritten, made[i].ID, made[i].RequestID, left)
		}
		left = o.StockWritten
	}
	if got := stocktest.Left(t, store, item.ID); got != left {
		t.Errorf("stock = %d, want %d", got, left)
	}
}

func TestBatchSellsAllThatFit(t *testing.T) {
	store := stocktest.Open(t)
	for _, tt := range []struct {
		name       string
		stock      int64
		quantities []int64
		sold       []bool
	}{
		{"all", 10, []int64{1, 2, 3}, []bool{true, true, true}},
		{"to the last unit", 6, []int64{1, 2, 3}, []bool{true, true, true}},
		{"one too large in the middle", 5, []int64{2, 4, 3}, []bool{true, false, true}},
		{"none", 0, []int64{1, 1}, []bool{false, false}},
		{"more than an int64 can add", 5, []int64{1<<63 - 1, 1<<63 - 1, 2}, []bool{false, false, true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			item := stocktest.Item(t, store, tt.stock)
			outcomes, err := store.DecrementBatch(t.Context(), item.ID, wanted(item, tt.quantities...))
			if err != nil {
				t.Fatal(err)
			}
			check(t, store, item, outcomes, tt.sold...)
		})
	}
	if _, err := store.DecrementBatch(t.Context(), 404, wanted(stock.Item{ID: 404}, 1, 1)); !errors.Is(err, stock.ErrNotFound) {
		t.Errorf("a batch of no item: %v, want ErrNotFound", err)
	}
}

// gathering returns a function that brings the sales, and fails the test if it comes before the row is locked.
func gathering(t *testing.T, store *stock.Store, item stock.Item, sales []stock.Sale) func() []stock.Sale {
	return func() []stock.Sale {
		row := store.Pool().QueryRowContext(t.Context(), "SELECT id FROM items WHERE id = ? FOR UPDATE SKIP LOCKED", item.ID)
		if err := row.Scan(new(uint64)); !errors.Is(err, sql.ErrNoRows) {
			t.Errorf("another transaction gets the row of the item: %v", err)
		}
		return sales
	}
}

func TestSalesJoinABatchThatHasTheRow(t *testing.T) {
	store := stocktest.Open(t)
	for _, tt := range []struct {
		name          string
		stock         int64
		first, joined []int64
		sold          []bool
	}{
		{"all", 10, []int64{1, 2}, []int64{3, 4}, []bool{true, true, true, true}},
		{"none joins", 10, []int64{1, 2}, nil, []bool{true, true}},
		{"the last unit is gone", 3, []int64{1, 2}, []int64{1}, []bool{true, true, false}},
		{"one of the first is too large", 5, []int64{6, 2}, []int64{4, 3}, []bool{false, true, false, true}},
		{"none of the first", 2, []int64{3}, []int64{2}, []bool{false, true}},
		{"none", 0, []int64{1}, []int64{1}, []bool{false, false}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			item := stocktest.Item(t, store, tt.stock)
			sales := wanted(item, slices.Concat(tt.first, tt.joined)...)
			outcomes, err := store.DecrementOpenBatch(t.Context(), item.ID, sales[:len(tt.first)], gathering(t, store, item, sales))
			if err != nil {
				t.Fatal(err)
			}
			check(t, store, item, outcomes, tt.sold...)
		})
	}
}

// TestALimitCountsTheBatchThatIsJoined: a customer's first order is not in the table yet.
func TestALimitCountsTheBatchThatIsJoined(t *testing.T) {
	store := stocktest.Open(t)
	item := stocktest.Item(t, store, 10)
	sales := wanted(item, 2, 2, 1)
	for i := range sales {
		sales[i].Subject, sales[i].Limit = "ann", 3
	}
	outcomes, err := store.DecrementOpenBatch(t.Context(), item.ID, sales[:1], gathering(t, store, item, sales))
	if err != nil {
		t.Fatal(err)
	}
	if outcomes[0].Err != nil || !errors.Is(outcomes[1].Err, stock.ErrLimit) || outcomes[2].Err != nil {
		t.Errorf("orders of 2, 2 and 1 under a limit of 3: %v, %v, %v, want the second refused", outcomes[0].Err, outcomes[1].Err, outcomes[2].Err)
	}
	if got := stocktest.Left(t, store, item.ID); got != 7 {
		t.Errorf("stock = %d, want 7", got)
	}
}

// TestBatchIdsWhereAClusterChangesItsSteps makes two batches on one connection. No outcome may have the
// id of another order.
func TestBatchIdsWhereAClusterChangesItsSteps(t *testing.T) {
	store := stocktest.Open(t, stock.WithPoolSize(1))
	for _, step := range []int{1, 3} {
		if _, err := store.Pool().ExecContext(t.Context(), "SET SESSION auto_increment_increment = ?", step); err != nil {
			t.Fatal(err)
		}
		item := stocktest.Item(t, store, 9)
		outcomes, err := store.DecrementBatch(t.Context(), item.ID, wanted(item, 1, 1, 1))
		if err != nil {
			t.Fatal(err)
		}
		check(t, store, item, outcomes, true, true, true)
		orders, err := store.ItemOrders(t.Context(), item.ID)
		if err != nil || orders[1].ID-orders[0].ID != uint64(step) {
			t.Errorf("ids of %+v, %v: the server did not count in steps of %d", orders, err, step)
		}
	}
}

// TestOneRowsErrorIsItsOwn has bad rows in a batch, one of which has joined: the others are sold.
func TestOneRowsErrorIsItsOwn(t *testing.T) {
	store := stocktest.Open(t)
	item := stocktest.Item(t, store, 10)
	before := one(item)
	before.IdempotencyKey = "used"
	if _, err := store.Decrement(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	sales := wanted(item, 1, 1, 1, 1)
	sales[1].IdempotencyKey = "used"                   // 1062
	sales[2].RequestID = strings.Repeat("x", 64) + "y" // 1406
	outcomes, err := store.DecrementOpenBatch(t.Context(), item.ID, sales[:1], gathering(t, store, item, sales))
	if err != nil {
		t.Fatal(err)
	}
	if outcomes[0].Err != nil || outcomes[3].Err != nil {
		t.Errorf("the good sales: %v, %v", outcomes[0].Err, outcomes[3].Err)
	}
	if !errors.Is(outcomes[1].Err, stock.ErrRepeated) {
		t.Errorf("the used key: %v, want ErrRepeated", outcomes[1].Err)
	}
	if fromServer, ok := errors.AsType[*mysqldriver.MySQLError](outcomes[2].Err); !ok || fromServer.Number != 1406 {
		t.Errorf("the long request id: %v, want 1406", outcomes[2].Err)
	}
	if got := stocktest.Left(t, store, item.ID); got != 7 {
		t.Errorf("stock = %d, want 7", got)
	}
}

// TestABatchWithRepeatedKeysStaysABatch: the sales that are no repeats are sold together.
func TestABatchWithRepeatedKeysStaysABatch(t *testing.T) {
	var inserts atomic.Int64
	direct, store := openBehind(t, func() meddler {
		return func(packet []byte, _, _ net.Conn) bool {
			if bytes.Contains(packet, []byte("\x03INSERT")) {
				inserts.Add(1)
			}
			return false
		}
	})
	item := stocktest.Item(t, direct, 100)
	sales := wanted(item, slices.Repeat([]int64{1}, 20)...)
	for i := range sales {
		sales[i].IdempotencyKey = fmt.Sprint("key ", i)
		if i%7 == 3 { // sold before, by another shop
			if _, err := direct.Decrement(t.Context(), sales[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	outcomes, err := store.DecrementBatch(t.Context(), item.ID, sales)
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range outcomes {
		repeated, ok := errors.AsType[stock.RepeatedError](o.Err)
		if again := i%7 == 3; again != ok || again == (o.Order.PublicID != "") || again && *repeated.Order.IdempotencyKey != sales[i].IdempotencyKey {
			t.Errorf("sale %d: order %q, %v with the order %+v", i, o.Order.PublicID, o.Err, repeated.Order)
		}
	}
	if got := stocktest.Left(t, direct, item.ID); got != 80 || inserts.Load() != 2 {
		t.Errorf("%d units are left after %d INSERTs, want 80 and 2: all, and those that are no repeats", got, inserts.Load())
	}
	for _, want := range []int64{2, 3} { // while batches meet repeats, they are looked for first
		sales[0].IdempotencyKey = fmt.Sprint("new ", want)
		if outcomes, err = store.DecrementBatch(t.Context(), item.ID, sales[:want]); err != nil || outcomes[0].Err != nil || !errors.Is(outcomes[1].Err, stock.ErrRepeated) {
			t.Errorf("a further batch: %+v, %v", outcomes, err)
		}
		if inserts.Load() != want+1 {
			t.Errorf("%d INSERTs, want %d", inserts.Load(), want+1)
		}
	}
}

// TestABasketUnderTheKeyOfABatch: the order that is found has its lines, so that no sale of one line is taken for it.
func TestABasketUnderTheKeyOfABatch(t *testing.T) {
	store := stocktest.Open(t)
	item, other, third := stocktest.Item(t, store, 10), stocktest.Item(t, store, 10), stocktest.Item(t, store, 10)
	basket := one(item)
	basket.IdempotencyKey, basket.More = "used", []stock.Line{{ItemID: other.ID, Quantity: 2}, {ItemID: third.ID, Quantity: 1}}
	if _, err := store.Decrement(t.Context(), basket); err != nil {
		t.Fatal(err)
	}
	again := one(item)
	again.IdempotencyKey = "used"
	outcomes, err := store.DecrementBatch(t.Context(), item.ID, []stock.Sale{again})
	if err != nil {
		t.Fatal(err)
	}
	found, _ := errors.AsType[stock.RepeatedError](outcomes[0].Err)
	if len(found.Order.More) != 2 || found.Order.More[0].ItemID != other.ID || found.Order.More[1].ItemID != third.ID {
		t.Errorf("%v with the order %+v, want its further lines, once each", outcomes[0].Err, found.Order)
	}
}

// TestCommitWithoutAnAnswer loses the connection around the COMMIT of a batch that a sale has joined.
func TestCommitWithoutAnAnswer(t *testing.T) {
	for _, tt := range []struct {
		name    string
		deliver bool // whether the server gets the COMMIT
	}{
		{"the answer is lost", true},
		{"the COMMIT is lost", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			direct, store := openBehind(t, losesOneCommit(tt.deliver))
			item := stocktest.Item(t, direct, 10)
			sales := wanted(item, 1, 2)
			outcomes, err := store.DecrementOpenBatch(t.Context(), item.ID, sales[:1], gathering(t, direct, item, sales))
			if !tt.deliver {
				if !errors.Is(err, stock.ErrUnknown) {
					t.Errorf("DecrementBatch = %v, want ErrUnknown", err)
				}
				check(t, direct, item, nil)
				return
			}
			if err != nil {
				t.Fatalf("DecrementBatch = %v, but the batch was committed", err)
			}
			check(t, direct, item, outcomes, true, true)
		})
	}
}

// TestABatchOfRepeatsWritesNothing: the units that it took with the row's lock are rolled back.
func TestABatchOfRepeatsWritesNothing(t *testing.T) {
	store := stocktest.Open(t)
	item := stocktest.Item(t, store, 10)
	outcomes, err := store.DecrementOpenBatch(t.Context(), item.ID, wanted(item, 1, 2), func() []stock.Sale { return nil })
	if now, readErr := store.Read(t.Context(), item.ID); err != nil || readErr != nil || len(outcomes) > 0 || now != item {
		t.Errorf("%v, %v, %v: the item is %+v, want %+v", outcomes, err, readErr, now, item)
	}
}

// TestABatchOfWhatWasOversold finds fewer units than none.
func TestABatchOfWhatWasOversold(t *testing.T) {
	store := stocktest.Open(t)
	item := stocktest.Item(t, store, -2)
	for _, n := range []int{1, 3} {
		sales := make([]stock.Sale, n)
		for i := range sales {
			sales[i] = one(item)
		}
		outcomes, err := store.DecrementBatch(t.Context(), item.ID, sales)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range outcomes {
			if !errors.Is(o.Err, stock.ErrSoldOut) {
				t.Errorf("of %d: %v", n, o.Err)
			}
		}
	}
	if left := stocktest.Left(t, store, item.ID); left != -2 {
		t.Errorf("%d units are left, want -2", left)
	}
}

// TestABatchFindsItsKeysByTheirIndex: what a batch reads does not grow with the orders that were made before.
func TestABatchFindsItsKeysByTheirIndex(t *testing.T) {
	store := stocktest.Open(t, stock.WithPoolSize(1))
	item := stocktest.Item(t, store, 100)
	sales := make([]stock.Sale, 40)
	for i := range sales {
		sales[i] = one(item)
		sales[i].IdempotencyKey = fmt.Sprint("key ", i)
	}
	if _, err := store.DecrementBatch(t.Context(), item.ID, sales); err != nil {
		t.Fatal(err)
	}
	const others = "INSERT INTO orders (item_id, quantity, stock_read, stock_written, strategy, shop, request_id, idempotency_key)" +
		" SELECT item_id, quantity, stock_read, stock_written, strategy, shop, request_id, UUID() FROM orders"
	for _, statement := range []string{others, others, others, others, others, others, others, "ANALYZE TABLE orders"} {
		if _, err := store.Pool().ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	before := rowsRead(t, store)
	outcomes, err := store.DecrementBatch(t.Context(), item.ID, sales)
	if err != nil || !errors.Is(outcomes[0].Err, stock.ErrRepeated) {
		t.Fatalf("%+v, %v", outcomes, err)
	}
	if rows := rowsRead(t, store) - before; rows > 600 {
		t.Errorf("a batch of %d repeats read %d rows, beside %d orders", len(sales), rows, 128*len(sales))
	}
}

// losesOneCommit is for a proxy that ends the first connection on which a COMMIT is sent, before or
// after the server has it.
func losesOneCommit(deliver bool) func() meddler {
	var lost atomic.Bool
	return func() meddler {
		return func(packet []byte, client, server net.Conn) bool {
			if !bytes.Contains(packet, []byte("\x03COMMIT")) || lost.Swap(true) {
				return false
			}
			client.Close()
			if deliver {
				server.Write(packet)
				server.Read(make([]byte, 1<<10)) // the answer, unless the copy was faster: the server is done
			}
			return true
		}
	}
}

// TestABatchFindsAKeyThatIsNewerThanWhatItSees: another item was sold under it when the batch had counted what its
// customer has. The others are sold together.
func TestABatchFindsAKeyThatIsNewerThanWhatItSees(t *testing.T) {
	var commits atomic.Int64
	var meanwhile atomic.Pointer[stock.Sale]
	var direct *stock.Store
	direct, store := openBehind(t, func() meddler {
		return func(packet []byte, _, _ net.Conn) bool {
			if bytes.Contains(packet, []byte("\x03COMMIT")) {
				commits.Add(1)
			}
			if bytes.Contains(packet, []byte("\x03INSERT")) {
				if sale := meanwhile.Swap(nil); sale != nil {
					if _, err := direct.Decrement(t.Context(), *sale); err != nil {
						t.Error(err)
					}
				}
			}
			return false
		}
	})
	item := stocktest.Item(t, direct, 10)
	sales := wanted(item, 1, 1, 1)
	for i := range sales {
		sales[i].Subject, sales[i].Limit, sales[i].IdempotencyKey = "ann", 5, fmt.Sprint("key ", i)
	}
	other := sales[1]
	other.SetLines([]stock.Line{{ItemID: stocktest.Item(t, direct, 1).ID, Quantity: 1}, {ItemID: stocktest.Item(t, direct, 1).ID, Quantity: 1}})
	meanwhile.Store(&other)
	outcomes, err := store.DecrementBatch(t.Context(), item.ID, sales)
	for errors.Is(err, stock.ErrConflict) { // MariaDB from 11.6 on locks no row that it does not see: the strategy tries again
		outcomes, err = store.DecrementBatch(t.Context(), item.ID, sales)
	}
	if err != nil {
		t.Fatal(err)
	}
	repeated, _ := errors.AsType[stock.RepeatedError](outcomes[1].Err)
	if outcomes[0].Err != nil || outcomes[2].Err != nil || len(repeated.Order.More) != 1 || commits.Load() != 1 {
		t.Errorf("%d transactions: %v, %v with the order %+v, %v; want one, and the other item's order", commits.Load(),
			outcomes[0].Err, outcomes[1].Err, repeated.Order, outcomes[2].Err)
	}
	if got := stocktest.Left(t, direct, item.ID); got != 8 {
		t.Errorf("stock = %d, want 8", got)
	}
}
