package strategy_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/strategytest"
)

// farAhead is a token of a clock that was ahead.
const farAhead = 1 << 62

// TestAFenceFromAClockThatWasAhead blocks an item only where the fence decides what is written.
func TestAFenceFromAClockThatWasAhead(t *testing.T) {
	for name, want := range map[string]error{"fenced": stock.ErrFenced, "fenced-relative": nil} {
		d, item, seller, wanted := fencedItem(t, name)
		if err := d.Store.RaiseFence(t.Context(), item.ID, farAhead); err != nil {
			t.Fatal(err)
		}
		if _, err := seller.Sell(t.Context(), wanted); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
		now, err := d.Store.Read(t.Context(), item.ID)
		if err != nil || want == nil && now.Fence == farAhead {
			t.Errorf("%s: the fence is %d, %v, after a sale past it", name, now.Fence, err)
		}
	}
}

// TestAnOvertakenHolderIsFencedOff takes a holder's lock away after its last look at it, and raises
// the fence as the next holder does.
func TestAnOvertakenHolderIsFencedOff(t *testing.T) {
	d, item, seller, wanted := fencedItem(t, "fenced-relative")
	ctx := sale.WithHook(t.Context(), func(held context.Context, p sale.Point, _ []slog.Attr) {
		if p != sale.Write {
			return
		}
		d.Redis.Del(t.Context(), d.Redis.Keys(t.Context(), "*"+sale.Key(item.ID)+"*").Val()...)
		if err := d.Store.RaiseFence(t.Context(), item.ID, farAhead); err != nil {
			t.Error(err)
		}
		<-held.Done()
	})
	if _, err := seller.Sell(ctx, wanted); !errors.Is(err, stock.ErrFenced) {
		t.Errorf("%v, want ErrFenced", err)
	}
	if now, err := d.Store.Read(t.Context(), item.ID); err != nil || now != (stock.Item{ID: item.ID, Name: item.Name, Stock: 5, Fence: farAhead}) {
		t.Errorf("the item is %+v, %v, want it as it was", now, err)
	}
}

func fencedItem(t *testing.T, name string) (d strategy.Deps, item stock.Item, seller *strategy.Seller, wanted stock.Sale) {
	t.Helper()
	by, err := strategy.Find(name, strategy.All())
	if err != nil {
		t.Fatal(err)
	}
	d = strategytest.Deps(t)
	d.Lease = 3 * time.Second
	item = stocktest.Item(t, d.Store, 5)
	return d, item, strategytest.NewSeller(t, by, d), stock.Sale{ItemID: item.ID, Quantity: 1, RequestID: "r", Shop: "test"}
}
