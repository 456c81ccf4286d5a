package baskets

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/strategy/declared/declaredtest"
	"stocklock/internal/strategy/ladder"
	"stocklock/internal/strategy/strategytest"
	"stocklock/internal/testserver"
)

// scene has a way and the items that customers want of it.
type scene struct {
	*testing.T
	strategy.Deps
	way   ladder.Rung
	items []stock.Item
}

func newScene(t *testing.T, way ladder.Rung, d strategy.Deps, units ...int64) *scene {
	s := &scene{T: t, Deps: d, way: way}
	for _, n := range units {
		s.items = append(s.items, declaredtest.Subject(way.Strategy, way.Describe()).NewItem(t, d, n))
	}
	return s
}

// meeting is where a customer has its first item and not yet the others.
func (s *scene) meeting() sale.Point {
	if s.way.Describe().Passes(sale.Acquired) {
		return sale.Acquired
	}
	return sale.Taken
}

// customer is one sale. What it passes is seen by others.
type customer struct {
	passed sync.Map // by sale.Point
	over   atomic.Bool
	ended  sync.WaitGroup
	err    error // once it has ended
}

func (c *customer) has(p sale.Point) bool {
	_, ok := c.passed.Load(p)
	return ok
}

// order posts a unit of each item, by index, in that order. It calls meet when the sale passes a point for
// the first time.
func (s *scene) order(o strategy.Options, at sale.Point, meet func(), items ...int) *customer {
	s.Helper()
	var lines []stock.Line
	for _, i := range items {
		lines = append(lines, stock.Line{ItemID: s.items[i].ID, Quantity: 1})
	}
	wanted := stock.Sale{RequestID: "r", Shop: "test"}
	wanted.SetLines(lines)
	d := s.Deps
	d.Options = o
	seller := strategytest.NewSeller(s.T, s.way.Strategy, d)
	c := &customer{}
	met := sync.OnceFunc(meet)
	ctx := sale.WithHook(strategy.WithPosted(s.Context(), lines), func(_ context.Context, p sale.Point, _ []slog.Attr) {
		if c.passed.Store(p, true); p == at {
			met()
		}
	})
	c.ended.Go(func() {
		_, c.err = seller.Sell(ctx, wanted)
		c.over.Store(true)
	})
	return c
}

// buy waits for the end of an order that nobody meets.
func (s *scene) buy(o strategy.Options, items ...int) *customer {
	s.Helper()
	c := s.order(o, "", func() {}, items...)
	c.ended.Wait()
	return c
}

// await waits until a customer has passed a point or has ended.
func (s *scene) await(c *customer, p sale.Point) {
	s.Helper()
	testserver.Await(s.T, "the point "+string(p), func() bool { return c.has(p) || c.over.Load() })
}

// keptOut waits until a customer is kept out, by the point waiting or in MySQL, has passed a point, or has
// ended. No other customer may wait in MySQL.
func (s *scene) keptOut(c *customer, or sale.Point) {
	s.Helper()
	asked := time.Now() // an answer to the scene before would be about its customers
	testserver.Await(s.T, "a customer who waits", func() bool {
		if c.has(sale.Waiting) || c.has(or) || c.over.Load() {
			return true
		}
		if time.Since(asked) < stocktest.LockWaitsStay {
			return false
		}
		waiting, err := stocktest.LockWaits(s.Context(), s.Store)
		asked = time.Now()
		return err == nil && len(waiting) > 0
	})
}

// units returns what is for sale of each item. It waits for the transactions that have the rows.
func (s *scene) units() (left []int64) {
	s.Helper()
	for _, item := range s.items {
		var n int64
		if err := s.Store.Pool().QueryRowContext(s.Context(), "SELECT stock FROM items WHERE id = ? FOR UPDATE", item.ID).Scan(&n); err != nil {
			s.Fatal(err)
		}
		for _, key := range declared.KeysOf(s.way.Declared.State.Keys, item.ID) {
			counted, err := s.Redis.Get(s.Context(), key).Int64()
			if err != nil {
				s.Fatal(err)
			}
			n = counted
		}
		left = append(left, n)
	}
	return left
}

// sold returns how many units of an item are in orders.
func (s *scene) sold(i int) (n int64) {
	s.Helper()
	if err := s.Store.Pool().QueryRowContext(s.Context(), "SELECT COALESCE(SUM(quantity), 0) FROM orders WHERE item_id = ?", s.items[i].ID).Scan(&n); err != nil {
		s.Fatal(err)
	}
	return n
}
