package stock_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
)

func TestLinesOfOneItemBecomeOne(t *testing.T) {
	var sale stock.Sale
	given := []stock.Line{{ItemID: 7, Quantity: 1}, {ItemID: 3, Quantity: 2}, {ItemID: 7, Quantity: 4}, {ItemID: 5, Quantity: 1}}
	sale.SetLines(given)
	want := []stock.Line{{ItemID: 3, Quantity: 2}, {ItemID: 5, Quantity: 1}, {ItemID: 7, Quantity: 5}}
	if got := sale.Lines(); !slices.Equal(got, want) {
		t.Errorf("the lines are %v, want %v", got, want)
	}
	if given[0].Quantity != 1 || given[1].ItemID != 3 {
		t.Errorf("the caller's lines are now %v", given)
	}
}

// sold sells one unit of each item to a subject.
func sold(t *testing.T, store *stock.Store, subject string, items ...stock.Item) stock.Order {
	t.Helper()
	sale := stock.Sale{Subject: subject, RequestID: "r", Strategy: "test", Shop: "shop"}
	var lines []stock.Line
	for _, item := range items {
		lines = append(lines, stock.Line{ItemID: item.ID, Quantity: 1})
	}
	sale.SetLines(lines)
	order, err := store.Decrement(t.Context(), sale)
	if err != nil {
		t.Fatal(err)
	}
	read, err := store.Order(t.Context(), order.PublicID)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// TestTheOrdersOfASubjectAreListed goes through a list while orders are added, which leaves every page
// as it was.
func TestTheOrdersOfASubjectAreListed(t *testing.T) {
	store := stocktest.Open(t)
	items := []stock.Item{stocktest.Item(t, store, 100), stocktest.Item(t, store, 100)}
	var want []stock.Order
	for range 7 {
		want = slices.Insert(want, 0, sold(t, store, "ann", items[:1+len(want)%2]...))
		sold(t, store, "bob", items...)
	}
	if _, err := store.Pool().ExecContext(t.Context(), "UPDATE orders SET created_at = ? WHERE id = ? OR line_of = ?", want[3].CreatedAt, want[4].ID, want[4].ID); err != nil { // over the end of a page
		t.Fatal(err)
	}
	always := stock.Period{From: time.Unix(0, 0), Until: time.Now().Add(time.Hour)}
	var got []stock.Order
	for before, page := "", []stock.Order(nil); before == "" || len(page) > 0; {
		var err error
		if page, err = store.OrdersOf(t.Context(), "ann", always, before, 2); err != nil {
			t.Fatal(err)
		}
		if got = append(got, page...); len(page) > 0 {
			before = page[len(page)-1].PublicID
		}
		sold(t, store, "ann", items...)
	}
	want[4].CreatedAt = want[3].CreatedAt
	for i := range want[4].More {
		want[4].More[i].CreatedAt = want[3].CreatedAt
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("listed %v\nwant   %v", got, want)
	}
	of := func(in stock.Period) int {
		orders, err := store.OrdersOf(t.Context(), "ann", in, "", 100)
		if err != nil {
			t.Fatal(err)
		}
		return len(orders)
	}
	if from, until := of(stock.Period{From: want[1].CreatedAt, Until: always.Until}), of(stock.Period{From: always.From, Until: want[1].CreatedAt}); from != 7 || until != 5 {
		t.Errorf("%d orders since one of them, and %d before it, want 7 and 5", from, until)
	}
	if _, err := store.OrdersOf(t.Context(), "bob", always, want[0].PublicID, 2); !errors.Is(err, stock.ErrNotFound) {
		t.Errorf("the orders behind another subject's: %v, want ErrNotFound", err)
	}
}

// TestAListReadsOnlyItsPage has many orders of the subject, and of others.
func TestAListReadsOnlyItsPage(t *testing.T) {
	store := stocktest.Open(t, stock.WithPoolSize(1))
	item := stocktest.Item(t, store, 100)
	for _, subject := range []string{"ann", "bob"} {
		fill(t, store, item, 5000, ", public_id, subject", ", UUID(), '"+subject+"'")
	}
	in := stock.Period{From: time.Unix(0, 0), Until: time.Now().Add(24 * time.Hour)}
	last, err := store.OrdersOf(t.Context(), "ann", in, "", 1)
	if err != nil {
		t.Fatal(err)
	}
	before := rowsRead(t, store)
	page, err := store.OrdersOf(t.Context(), "ann", in, last[0].PublicID, 50)
	if read := rowsRead(t, store) - before; err != nil || len(page) != 50 || read > 150 {
		t.Errorf("a page of %d orders read %d rows, %v", len(page), read, err)
	}
}

// TestALineIsCancelledByItself cancels a line of an order, and then the rest.
func TestALineIsCancelledByItself(t *testing.T) {
	store := stocktest.Open(t)
	items := []stock.Item{stocktest.Item(t, store, 5), stocktest.Item(t, store, 5), stocktest.Item(t, store, 5)}
	order := sold(t, store, "ann", items...)
	keys := 0
	by := func() stock.Author {
		keys++
		return stock.Author{Subject: "staff", IdempotencyKey: fmt.Sprint(keys), RequestID: "r", Shop: "shop"}
	}
	check := func(when string, want ...int64) {
		t.Helper()
		now, err := store.Order(t.Context(), order.PublicID)
		if err != nil {
			t.Fatal(err)
		}
		for i, item := range items {
			if left := stocktest.Left(t, store, item.ID); left != want[i] || (now.Rows()[i].CancelledAt != nil) != (left == 5) {
				t.Errorf("%s: %d units of item %d are left, want %d; its row is %+v", when, left, i+1, want[i], now.Rows()[i])
			}
		}
	}
	row, ok := order.Row(items[1].ID)
	if _, none := order.Row(items[2].ID + 1); !ok || none {
		t.Fatal("the order has other rows than were sold")
	}
	if _, err := store.Cancel(t.Context(), by(), stock.CancelledLine, []stock.Order{row}); err != nil {
		t.Fatal(err)
	}
	check("with one line cancelled", 4, 5, 4)
	if _, err := store.Cancel(t.Context(), by(), stock.CancelledLine, []stock.Order{row}); !errors.Is(err, stock.ErrCancelled) {
		t.Errorf("cancelled twice: %v", err)
	}
	if made, err := store.Cancel(t.Context(), by(), stock.Cancelled, order.Rows()); err != nil || made.OrderID == nil || *made.OrderID != order.ID || made.IdempotencyKey != fmt.Sprint(keys) {
		t.Errorf("cancel the rest: %+v, %v", made, err)
	}
	check("with the rest cancelled", 5, 5, 5)
	if _, err := store.Cancel(t.Context(), by(), stock.Cancelled, order.Rows()); !errors.Is(err, stock.ErrCancelled) {
		t.Errorf("cancelled twice: %v", err)
	}
	for i, item := range items {
		changes, err := store.Changes(t.Context(), item.ID)
		if err != nil || len(changes) != 1 || changes[0].StockAfter != 5 || (changes[0].IdempotencyKey == "") != (i == 2) {
			t.Errorf("the changes of item %d are %+v, %v: want one, and one key for all lines of a cancellation", i+1, changes, err)
		}
	}
}

// TestALimitCountsOrdersThatWereWaitedFor has a basket wait for its second item while another order of
// that item is made. A snapshot from before the wait would not have it.
func TestALimitCountsOrdersThatWereWaitedFor(t *testing.T) {
	store := stocktest.Open(t)
	items := []stock.Item{stocktest.Item(t, store, 5), stocktest.Item(t, store, 5)}
	sale := stock.Sale{Subject: "ann", Limit: 1, RequestID: "r", Strategy: "test", Shop: "shop"}
	sale.SetLines([]stock.Line{{ItemID: items[0].ID, Quantity: 1}, {ItemID: items[1].ID, Quantity: 1}})
	second := sale
	second.SetLines(sale.More)
	outcome := make(chan error, 1)
	err := store.Transact(t.Context(), func(tx stock.Tx) error {
		left, err := tx.Take(items[1].ID, 1)
		if err != nil {
			return err
		}
		go func() { _, err := store.Decrement(context.WithoutCancel(t.Context()), sale); outcome <- err }()
		stocktest.AwaitLockWait(t, store) // the basket
		_, err = tx.Record(second, left+1, left)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-outcome; !errors.Is(err, stock.ErrLimit) {
		t.Errorf("the basket: %v, want ErrLimit", err)
	}
	if left := stocktest.Left(t, store, items[0].ID); left != 5 {
		t.Errorf("%d units of the first item are left, want 5", left)
	}
}

// TestABasketLocksItsRowsInTheOrderOfTheirIds: behind a row that another transaction has, it has the rows
// before, and none behind. The table is so small that a server left to itself would read all of it.
func TestABasketLocksItsRowsInTheOrderOfTheirIds(t *testing.T) {
	for name, sell := range map[string]func(*stock.Store, context.Context, stock.Sale) (stock.Order, error){
		"conditional": (*stock.Store).Decrement, "fenced": (*stock.Store).DecrementFenced,
	} {
		t.Run(name, func(t *testing.T) {
			store := stocktest.Open(t)
			var items []stock.Item
			for range 7 {
				items = append(items, stocktest.Item(t, store, 5))
			}
			holder, err := store.Pool().BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer holder.Rollback()
			if _, err := holder.ExecContext(t.Context(), "SELECT id FROM items WHERE id = ? FOR UPDATE", items[3].ID); err != nil {
				t.Fatal(err)
			}
			sale := stock.Sale{RequestID: "r", Shop: "test"}
			sale.SetLines([]stock.Line{{ItemID: items[5].ID, Quantity: 1, Token: 1}, {ItemID: items[3].ID, Quantity: 1, Token: 1}, {ItemID: items[1].ID, Quantity: 1, Token: 1}})
			ended := make(chan error, 1)
			go func() {
				_, err := sell(store, t.Context(), sale)
				ended <- err
			}()
			stocktest.AwaitLockWait(t, store) // the basket
			var free []uint64
			err = store.Transact(t.Context(), func(tx stock.Tx) error {
				return tx.Query(&free, "SELECT id FROM items ORDER BY id FOR UPDATE SKIP LOCKED")
			})
			want := []uint64{items[0].ID, items[2].ID, items[4].ID, items[5].ID, items[6].ID}
			if err != nil || !slices.Equal(free, want) {
				t.Errorf("free are the rows %v, %v; want %v", free, err, want)
			}
			if err := errors.Join(holder.Rollback(), <-ended); err != nil {
				t.Error(err)
			}
			for i, item := range items {
				if left := stocktest.Left(t, store, item.ID); left != int64(5-i%2) {
					t.Errorf("%d units are left of item %d", left, i)
				}
			}
		})
	}
}
