package strategy_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/strategytest"
)

// mixable are the strategies that may sell one item at the same time, beside restocks.
var mixable = []string{"fenced-relative", "conditional", "for-update"}

// TestMixedStrategiesBalance sells one item by several strategies while it is restocked. In the end
// what was there and what came is what was sold and what is left, to the unit.
func TestMixedStrategiesBalance(t *testing.T) {
	const initial = 1000
	d := strategytest.Deps(t)
	item := strategytest.NewItem(t, d, initial)
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
	defer stop()
	var working sync.WaitGroup
	var sold, came atomic.Int64
	sellBy := map[string]*atomic.Int64{}
	for _, name := range mixable {
		by, err := strategy.Find(name, strategy.All())
		if err != nil {
			t.Fatal(err)
		}
		sellBy[name] = &atomic.Int64{}
		for range 2 { // as two processes would
			seller := strategytest.NewSeller(t, by, d)
			working.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					order, err := seller.Sell(t.Context(), stock.Sale{ItemID: item.ID, Quantity: 1 + rand.Int64N(3), RequestID: strconv.Itoa(n), Shop: "test"})
					switch {
					case err == nil:
						sold.Add(order.Quantity)
						sellBy[name].Add(1)
					case !errors.Is(err, stock.ErrSoldOut) && !errors.Is(err, stock.ErrConflict):
						t.Errorf("%s: %v", name, err)
					}
				}
			})
		}
	}
	working.Go(func() {
		for ctx.Err() == nil {
			if _, err := d.Store.Pool().ExecContext(t.Context(), "UPDATE items SET stock = stock + 10, version = version + 1 WHERE id = ?", item.ID); err != nil {
				t.Error(err)
			}
			came.Add(10)
			time.Sleep(20 * time.Millisecond)
		}
	})
	working.Wait()
	now, err := d.Store.Read(t.Context(), item.ID)
	if err != nil {
		t.Fatal(err)
	}
	if initial+came.Load() != sold.Load()+now.Stock || now.Stock < 0 {
		t.Errorf("%d there were and %d came, but %d were sold and %d are left", initial, came.Load(), sold.Load(), now.Stock)
	}
	for name, n := range sellBy {
		if n.Load() < 10 {
			t.Errorf("%s sold only %d times: this test mixes nothing", name, n.Load())
		}
	}
}
