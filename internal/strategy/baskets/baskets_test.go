package baskets

import (
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/strategy/declared/declaredtest"
	"stocklock/internal/strategy/strategytest"
)

// TestAWaySellsABasketOrNothing sells three items in one order, in no order, and then a basket with an item
// that is sold out.
func TestAWaySellsABasketOrNothing(t *testing.T) {
	d := strategytest.Deps(t)
	for _, way := range All() {
		t.Run(way.Name, func(t *testing.T) {
			seller := strategytest.NewSeller(t, way.Strategy, d)
			var items []stock.Item
			for _, units := range []int64{5, 5, 1} {
				items = append(items, declaredtest.Subject(way.Strategy, way.Describe()).NewItem(t, d, units))
			}
			sell := func(order ...int) (stock.Order, error) {
				var lines []stock.Line
				for _, i := range order {
					lines = append(lines, stock.Line{ItemID: items[i].ID, Quantity: 1})
				}
				sale := stock.Sale{RequestID: "r", Shop: "test"}
				sale.SetLines(lines)
				return seller.Sell(strategy.WithPosted(t.Context(), lines), sale)
			}
			sold, err := sell(2, 0, 1)
			if err != nil {
				t.Fatal(err)
			}
			order, err := d.Store.Order(t.Context(), sold.PublicID)
			if err != nil || len(order.Rows()) != 3 || order.Strategy != way.Name {
				t.Errorf("its order is %+v, %v", order, err)
			}
			if _, err := sell(0, 2, 1); !errors.Is(err, stock.ErrSoldOut) {
				t.Errorf("with an item that is sold out: %v, want ErrSoldOut", err)
			}
			left := []int64{4, 4, 0}
			if !way.Declared.Baskets.Meets(declared.Complete) {
				left = []int64{3, 3, 0}
			}
			for i, want := range left {
				now, err := d.Store.Read(t.Context(), items[i].ID)
				if err != nil || now.Stock != want {
					t.Errorf("%d units are left of item %d, want %d, %v", now.Stock, i+1, want, err)
				}
				for _, key := range declared.KeysOf(way.Declared.State.Keys, items[i].ID) {
					if counted, err := d.Redis.Get(t.Context(), key).Int64(); err != nil && !errors.Is(err, redis.Nil) || err == nil && counted != want {
						t.Errorf("%s is %d, want %d, %v", key, counted, want, err)
					}
				}
			}
		})
	}
}

// TestWhatAWayDeclares: each way lacks a property or is what mends another one, and is only for baskets.
func TestWhatAWayDeclares(t *testing.T) {
	for _, way := range All() {
		if way.Declared.Baskets == nil || !way.Declared.OnlyBaskets || way.Doc == "" || way.Declared.Source == "" || way.Declared.Telling == "" {
			t.Errorf("%s does not declare all: %+v", way.Name, way.Describe())
			continue
		}
		if both := way.Declared.Baskets.Has & way.Declared.Baskets.NotApplicable; both != 0 {
			t.Errorf("%s has what does not apply to it: %s", way.Name, both)
		}
	}
}
