package strategy_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/strategytest"
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

func (b *batches) largest() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.sizes {
		n = max(n, s)
	}
	return n
}

func batchedSeller(t *testing.T, d strategy.Deps) (*strategy.Seller, *batches) {
	t.Helper()
	found, err := strategy.Find("batched", strategy.All())
	if err != nil {
		t.Fatal(err)
	}
	seen := &batches{}
	d.Batched = seen.add
	return strategytest.NewSeller(t, found, d), seen
}

type outcome struct {
	order stock.Order
	err   error
}

// sellWhileHeld starts the first sale, and the others once it waits for the row. It returns the
// outcomes in the order of the sales.
func sellWhileHeld(t *testing.T, d strategy.Deps, s *strategy.Seller, item stock.Item, sales []stock.Sale) []outcome {
	t.Helper()
	release := held(t, d, item)
	defer release()
	outcomes := make([]outcome, len(sales))
	var selling sync.WaitGroup
	for i := range sales {
		selling.Go(func() {
			outcomes[i].order, outcomes[i].err = s.Sell(t.Context(), sales[i])
		})
		time.Sleep(20 * time.Millisecond) // so that they queue in this order
	}
	release()
	selling.Wait()
	return outcomes
}

func TestBatchedSellsTogetherWhatWaits(t *testing.T) {
	d := strategytest.Deps(t)
	s, seen := batchedSeller(t, d)
	item := strategytest.NewItem(t, d, 4)
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
	if got := seen.largest(); got != 5 {
		t.Errorf("the largest batch has %d sales, want 5", got)
	}
}

func TestBatchedSellsOnceUnderOneKey(t *testing.T) {
	d := strategytest.Deps(t)
	s, _ := batchedSeller(t, d)
	item := strategytest.NewItem(t, d, 10)
	sale := func(id, key string, quantity int64) stock.Sale {
		return stock.Sale{ItemID: item.ID, Quantity: quantity, RequestID: id, Shop: "test", IdempotencyKey: key}
	}
	got := sellWhileHeld(t, d, s, item, []stock.Sale{
		sale("leader", "", 1), sale("a", "k", 1), sale("b", "k", 1), sale("c", "k", 2), sale("d", "other", 1)})
	if got[1].err != nil || !errors.Is(got[2].err, stock.ErrRepeated) {
		t.Errorf("the same key twice in a batch: %v, %v, want an order and ErrRepeated", got[1].err, got[2].err)
	}
	if !errors.Is(got[3].err, stock.ErrRepeated) {
		t.Errorf("the key for another quantity: %v, want ErrRepeated", got[3].err)
	}
	if got[4].err != nil {
		t.Errorf("another key: %v", got[4].err)
	}
	if _, err := s.Sell(t.Context(), sale("e", "k", 1)); !errors.Is(err, stock.ErrRepeated) {
		t.Errorf("the key in a later batch: %v, want ErrRepeated", err)
	}
	if left, err := d.Store.Read(t.Context(), item.ID); err != nil || left.Stock != 7 {
		t.Errorf("stock = %d, %v, want 7", left.Stock, err)
	}
}

// TestBatchedLeaves: a sale that is not being sold yet can give up, and the others go on without
// it.
func TestBatchedLeaves(t *testing.T) {
	d := strategytest.Deps(t)
	d.Wait = 200 * time.Millisecond
	s, _ := batchedSeller(t, d)
	item := strategytest.NewItem(t, d, 10)
	release := held(t, d, item)
	defer release()
	sell := func(ctx context.Context, id string) <-chan error {
		done := make(chan error, 1)
		go func() {
			_, err := s.Sell(ctx, stock.Sale{ItemID: item.ID, Quantity: 1, RequestID: id, Shop: "test"})
			done <- err
		}()
		time.Sleep(20 * time.Millisecond)
		return done
	}
	gone, leave := context.WithCancel(t.Context())
	leader, cancelled := sell(gone, "leader"), sell(gone, "gone")
	leave()
	if err := <-cancelled; !errors.Is(err, context.Canceled) {
		t.Errorf("a client that has gone: %v", err)
	}
	if err := <-sell(t.Context(), "late"); !errors.Is(err, strategy.ErrBusy) {
		t.Errorf("a sale that waits too long: %v, want ErrBusy", err)
	}
	next := sell(t.Context(), "next")
	release()
	if err := <-leader; err != nil {
		t.Errorf("the leader, whose client went when it was being sold: %v", err)
	}
	if err := <-next; err != nil {
		t.Errorf("the sale that waited behind them: %v", err)
	}
	if left, err := d.Store.Read(t.Context(), item.ID); err != nil || left.Stock != 8 {
		t.Errorf("stock = %d, %v, want 8", left.Stock, err)
	}
}

// TestALeaderWaitsForTheRow: the leader of a batch has queued behind nobody, and passes waiting when
// it loses against another transaction.
func TestALeaderWaitsForTheRow(t *testing.T) {
	d := strategytest.Deps(t, "?innodb_lock_wait_timeout=1")
	s, _ := batchedSeller(t, d)
	item := strategytest.NewItem(t, d, 1)
	release := held(t, d, item)
	defer release()
	ctx := sale.WithHook(t.Context(), func(_ context.Context, p sale.Point, _ []slog.Attr) {
		if p == sale.Waiting {
			release()
		}
	})
	if _, err := s.Sell(ctx, stock.Sale{ItemID: item.ID, Quantity: 1, RequestID: "r", Shop: "test"}); err != nil {
		t.Errorf("the row was released when the sale passed waiting: %v", err)
	}
}
