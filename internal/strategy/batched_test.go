package strategy_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/strategytest"
	"stocklock/internal/testserver"
)

// held keeps the item's row locked until the function that it returns is called, so that the sales
// that begin meanwhile gather in one batch behind the one that waits for the row.
func held(t *testing.T, d strategy.Deps, item stock.Item) (release func()) {
	t.Helper()
	tx, err := d.Store.Pool().Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("SELECT stock FROM items WHERE id = ? FOR UPDATE", item.ID); err != nil {
		t.Fatal(err)
	}
	return sync.OnceFunc(func() { tx.Rollback() })
}

type batches struct {
	mu    sync.Mutex
	sizes []int
}

func (b *batches) add(size int, _ time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sizes = append(b.sizes, size)
}

func batchedSeller(t *testing.T, d strategy.Deps) (*strategy.Seller, *batches) {
	t.Helper()
	seen := &batches{}
	d.Batched = seen.add
	return newBatchedSeller(t, d), seen
}

func newBatchedSeller(t *testing.T, d strategy.Deps) *strategy.Seller {
	t.Helper()
	found, err := strategy.Find("batched", strategy.All())
	if err != nil {
		t.Fatal(err)
	}
	return strategytest.NewSeller(t, found, d)
}

type outcome struct {
	order stock.Order
	err   error
}

// sellWhileHeld starts the first sale, and each of the others when the one before waits: the first for the
// row, the others in the queue. It returns the outcomes in the order of the sales.
func sellWhileHeld(t *testing.T, d strategy.Deps, s *strategy.Seller, item stock.Item, sales []stock.Sale) []outcome {
	t.Helper()
	release := held(t, d, item)
	defer release()
	outcomes := make([]outcome, len(sales))
	var selling sync.WaitGroup
	for i := range sales {
		queued := make(chan struct{})
		selling.Go(func() {
			outcomes[i].order, outcomes[i].err = s.Sell(onceWaiting(t, func() { close(queued) }), sales[i])
		})
		if i == 0 {
			stocktest.AwaitLockWait(t, d.Store)
		} else {
			<-queued
		}
	}
	release()
	selling.Wait()
	return outcomes
}

func TestBatchedSellsTogetherWhatWaits(t *testing.T) {
	d := strategytest.Deps(t)
	s, seen := batchedSeller(t, d)
	item := stocktest.Item(t, d.Store, 4)
	sales := make([]stock.Sale, 6)
	for i := range sales {
		sales[i] = stock.Sale{ItemID: item.ID, Quantity: 1, RequestID: fmt.Sprint(i), Shop: "test"}
	}
	sales[2].Quantity = 3 // does not fit any more when it is its turn
	for i, o := range sellWhileHeld(t, d, s, item, sales) {
		wantSold := i != 2 && i != 5
		if wantSold != (o.err == nil) || !wantSold && !errors.Is(o.err, stock.ErrSoldOut) {
			t.Errorf("sale %d: %v, want it sold: %t", i, o.err, wantSold)
		}
		if o.err == nil && o.order.RequestID != sales[i].RequestID {
			t.Errorf("sale %d got the order of %s", i, o.order.RequestID)
		}
	}
	if !slices.Equal(seen.sizes, []int{6}) {
		t.Errorf("batches of %v sales, want one of 6: the leader waited for the row, and the others joined it", seen.sizes)
	}
}

func TestBatchedSellsOnceUnderOneKey(t *testing.T) {
	d := strategytest.Deps(t)
	s, seen := batchedSeller(t, d)
	item := stocktest.Item(t, d.Store, 10)
	sale := func(id, key string, quantity int64) stock.Sale {
		return stock.Sale{ItemID: item.ID, Quantity: quantity, RequestID: id, Shop: "test", IdempotencyKey: key}
	}
	if _, err := d.Store.Decrement(t.Context(), sale("before", "used", 1)); err != nil {
		t.Fatal(err)
	}
	got := sellWhileHeld(t, d, s, item, []stock.Sale{
		sale("leader", "", 1), sale("a", "k", 1), sale("b", "k", 1), sale("c", "k", 2), sale("d", "other", 1), sale("e", "used", 1)})
	if got[1].err != nil || !errors.Is(got[2].err, stock.ErrRepeated) {
		t.Errorf("the same key twice in a batch: %v, %v, want an order and ErrRepeated", got[1].err, got[2].err)
	}
	if !errors.Is(got[3].err, stock.ErrRepeated) {
		t.Errorf("the key for another quantity: %v, want ErrRepeated", got[3].err)
	}
	if got[4].err != nil {
		t.Errorf("another key: %v", got[4].err)
	}
	if !errors.Is(got[5].err, stock.ErrRepeated) {
		t.Errorf("a key that had an order: %v, want ErrRepeated", got[5].err)
	}
	if !slices.Equal(seen.sizes, []int{3}) {
		t.Errorf("batches of %v sales, want one of 3", seen.sizes)
	}
	if _, err := s.Sell(t.Context(), sale("f", "k", 1)); !errors.Is(err, stock.ErrRepeated) {
		t.Errorf("the key in a later batch: %v, want ErrRepeated", err)
	}
	if left, err := d.Store.Read(t.Context(), item.ID); err != nil || left.Stock != 6 {
		t.Errorf("stock = %d, %v, want 6", left.Stock, err)
	}
}

// TestBatchedRefusesOneKeyByItsOwnQuantity: the first sale under it asks for more than there is.
func TestBatchedRefusesOneKeyByItsOwnQuantity(t *testing.T) {
	d := strategytest.Deps(t)
	s, _ := batchedSeller(t, d)
	item := stocktest.Item(t, d.Store, 5)
	sales := []stock.Sale{{Quantity: 1}, {IdempotencyKey: "k", Quantity: 10}, {IdempotencyKey: "k", Quantity: 10}, {IdempotencyKey: "k", Quantity: 1}}
	for i := range sales {
		sales[i].ItemID, sales[i].RequestID, sales[i].Shop = item.ID, fmt.Sprint(i), "test"
	}
	for i, o := range sellWhileHeld(t, d, s, item, sales) {
		if tooMany := sales[i].Quantity > 5; tooMany != errors.Is(o.err, stock.ErrSoldOut) || !tooMany && o.err != nil {
			t.Errorf("%d of 5 units: %v", sales[i].Quantity, o.err)
		}
	}
}

// TestBatchedRepeatsWithThoseThatJoined has the server end the transaction when sales have joined it. One
// more comes before the repeat, which has each of them once.
func TestBatchedRepeatsWithThoseThatJoined(t *testing.T) {
	l := &losing{text: "INSERT INTO `orders`"}
	d, direct := losingDeps(t, l)
	s, seen := batchedSeller(t, d)
	item := stocktest.Item(t, d.Store, 10)
	one := func(id string) stock.Sale {
		return stock.Sale{ItemID: item.ID, Quantity: 1, RequestID: id, Shop: "test", IdempotencyKey: "key of " + id}
	}
	var last outcome
	var selling sync.WaitGroup
	l.lost = func() {
		queued := make(chan struct{})
		selling.Go(func() {
			last.order, last.err = s.Sell(onceWaiting(t, func() { close(queued) }), one("last"))
		})
		<-queued
	}
	l.number.Store(1213)
	outcomes := sellWhileHeld(t, d, s, item, []stock.Sale{one("leader"), one("a"), one("b")})
	selling.Wait()
	for i, o := range append(outcomes, last) {
		if o.err != nil {
			t.Errorf("sale %d: %v", i, o.err)
		}
	}
	left, err := direct.Read(t.Context(), item.ID)
	orders, listErr := direct.ItemOrders(t.Context(), item.ID)
	if err := errors.Join(err, listErr); err != nil || left.Stock != 6 || len(orders) != 4 {
		t.Errorf("%d of 10 units are left, and there are %d orders, %v, want 6 and 4", left.Stock, len(orders), err)
	}
	if !slices.Equal(seen.sizes, []int{4}) || l.commits.Load() != 1 {
		t.Errorf("batches of %v sales in %d transactions, want one of 4", seen.sizes, l.commits.Load())
	}
}

// onceWaiting returns the context of a sale that calls fn when it passes waiting.
func onceWaiting(t *testing.T, fn func()) context.Context {
	return sale.WithHook(t.Context(), func(_ context.Context, p sale.Point, _ []slog.Attr) {
		if p == sale.Waiting {
			fn()
		}
	})
}

// TestBatchedHandsOn: sales that come when others cannot join any more are the next batch.
func TestBatchedHandsOn(t *testing.T) {
	d := strategytest.Deps(t)
	var s *strategy.Seller
	item := stocktest.Item(t, d.Store, 10)
	var sizes []int
	var selling sync.WaitGroup
	sell := func(id string, queued func()) {
		selling.Go(func() {
			if _, err := s.Sell(onceWaiting(t, queued), stock.Sale{ItemID: item.ID, Quantity: 1, RequestID: id, Shop: "test"}); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		})
	}
	d.Batched = func(size int, _ time.Duration) {
		if sizes = append(sizes, size); len(sizes) > 1 {
			return
		}
		for _, id := range []string{"a", "b", "c"} {
			queued := make(chan struct{})
			sell(id, func() { close(queued) })
			<-queued
		}
	}
	s = newBatchedSeller(t, d)
	sell("first", func() { t.Error("the first sale waits") })
	selling.Wait()
	if !slices.Equal(sizes, []int{1, 3}) {
		t.Errorf("batches of %v sales, want the first, and the three others", sizes)
	}
	if left, err := d.Store.Read(t.Context(), item.ID); err != nil || left.Stock != 6 {
		t.Errorf("stock = %d, %v, want 6", left.Stock, err)
	}
}

// TestBatchedLeaves: a sale that is not being sold yet can give up, and the others go on without
// it.
func TestBatchedLeaves(t *testing.T) {
	d := strategytest.Deps(t)
	d.Wait = 200 * time.Millisecond
	s, _ := batchedSeller(t, d)
	item := stocktest.Item(t, d.Store, 10)
	release := held(t, d, item)
	defer release()
	sell := func(ctx context.Context, id string) error {
		_, err := s.Sell(ctx, stock.Sale{ItemID: item.ID, Quantity: 1, RequestID: id, Shop: "test"})
		return err
	}
	gone, leave := context.WithCancel(t.Context())
	leader := make(chan error, 1)
	go func() { leader <- sell(gone, "leader") }()
	stocktest.AwaitLockWait(t, d.Store)
	if err := sell(sale.WithHook(gone, func(_ context.Context, p sale.Point, _ []slog.Attr) {
		if p == sale.Waiting {
			leave()
		}
	}), "gone"); !errors.Is(err, context.Canceled) {
		t.Errorf("a client that has gone: %v", err)
	}
	if err := sell(t.Context(), "late"); !errors.Is(err, strategy.ErrBusy) {
		t.Errorf("a sale that waits too long: %v, want ErrBusy", err)
	}
	next := make(chan error, 1)
	go func() {
		err := strategy.ErrBusy
		for errors.Is(err, strategy.ErrBusy) {
			err = sell(onceWaiting(t, release), "next")
		}
		next <- err
	}()
	if err := <-leader; !errors.Is(err, context.Canceled) {
		t.Errorf("the leader, whose client went when it waited for the row: %v", err)
	}
	if err := <-next; err != nil {
		t.Errorf("the sale that waited behind them: %v", err)
	}
	if left, err := d.Store.Read(t.Context(), item.ID); err != nil || left.Stock != 9 {
		t.Errorf("stock = %d, %v, want 9", left.Stock, err)
	}
}

// TestABatchLeavesOutWhoHasGone: of a key that was sent again, the request that is over is not the one that is sold.
func TestABatchLeavesOutWhoHasGone(t *testing.T) {
	d := strategytest.Deps(t)
	s, _ := batchedSeller(t, d)
	item := stocktest.Item(t, d.Store, 10)
	release := held(t, d, item)
	defer release()
	gone, leave := context.WithCancel(t.Context())
	sell := func(ctx context.Context) chan error {
		done := make(chan error, 1)
		go func() {
			_, err := s.Sell(ctx, stock.Sale{ItemID: item.ID, Quantity: 1, RequestID: "r", Shop: "test", IdempotencyKey: "k"})
			done <- err
		}()
		return done
	}
	first := sell(gone)
	stocktest.AwaitLockWait(t, d.Store)
	queued := make(chan struct{})
	again := sell(onceWaiting(t, func() { close(queued) }))
	<-queued
	leave()
	release()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the request that is over: %v", err)
	}
	if err := <-again; err != nil {
		t.Errorf("the same one again: %v", err)
	}
}

// TestABatchWaitsForAConnectionAsOthersDo, also before it looks whether an item is still sold out.
func TestABatchWaitsForAConnectionAsOthersDo(t *testing.T) {
	d := strategytest.Deps(t)
	d.Wait = 200 * time.Millisecond
	s, _ := batchedSeller(t, d)
	item, soldOut := stocktest.Item(t, d.Store, 1), stocktest.Item(t, d.Store, 0)
	sell := func(of stock.Item) error {
		_, err := s.Sell(t.Context(), stock.Sale{ItemID: of.ID, Quantity: 1, RequestID: "r", Shop: "test"})
		return err
	}
	if err := sell(soldOut); !errors.Is(err, stock.ErrSoldOut) {
		t.Fatal(err)
	}
	d.Store.Pool().SetMaxOpenConns(1)
	only, err := d.Store.Pool().Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer only.Close()
	for what, of := range map[string]stock.Item{"a sale": item, "a look": soldOut} {
		done := make(chan error, 1)
		go func() { done <- sell(of) }()
		testserver.Await(t, "the end of "+what, func() bool { return len(done) == 1 })
		if err := <-done; !errors.Is(err, strategy.ErrBusy) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestALeaderWaitsForTheRow: the leader of a batch has queued behind nobody, and passes waiting when
// it loses against another transaction.
func TestALeaderWaitsForTheRow(t *testing.T) {
	d := strategytest.Deps(t, "&innodb_lock_wait_timeout=1")
	s, _ := batchedSeller(t, d)
	item := stocktest.Item(t, d.Store, 1)
	release := held(t, d, item)
	defer release()
	if _, err := s.Sell(onceWaiting(t, release), stock.Sale{ItemID: item.ID, Quantity: 1, RequestID: "r", Shop: "test"}); err != nil {
		t.Errorf("the row was released when the sale passed waiting: %v", err)
	}
}

// TestABatchThatGetsNoConnectionToLookIsBusy, as one that gets none to sell: MySQL can work.
func TestABatchThatGetsNoConnectionToLookIsBusy(t *testing.T) {
	d := strategytest.Deps(t)
	d.Wait = 100 * time.Millisecond
	s := newBatchedSeller(t, d)
	sale := stock.Sale{ItemID: stocktest.Item(t, d.Store, 0).ID, Quantity: 1, RequestID: "r", Shop: "test"}
	if _, err := s.Sell(t.Context(), sale); !errors.Is(err, stock.ErrSoldOut) {
		t.Fatal(err)
	}
	for range d.Store.Pool().Stats().MaxOpenConnections {
		conn, err := d.Store.Pool().Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	if _, err := s.Sell(t.Context(), sale); !errors.Is(err, strategy.ErrBusy) {
		t.Errorf("%v, want busy", err)
	}
}
