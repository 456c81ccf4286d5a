package strategy_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/strategytest"
)

// mixable are the strategies that may sell one item at the same time, beside changes of it.
func mixable() []strategy.Strategy {
	return slices.DeleteFunc(strategy.All(), func(s strategy.Strategy) bool { return !s.Mixable })
}

func TestWhichStrategiesMayBeMixed(t *testing.T) {
	if got := fmt.Sprint(strategy.Names(mixable())); got != "[fenced-relative for-update optimistic conditional batched]" {
		t.Errorf("mixable are %s", got)
	}
}

// TestMixedStrategiesBalance sells one item by several strategies while it is restocked, corrected
// and renamed, orders of it are cancelled, and units are held, paid and given back. In the end what was there and what came is what was
// sold and what is left, to the unit.
func TestMixedStrategiesBalance(t *testing.T) {
	m := &mixture{Deps: strategytest.Deps(t), t: t, done: map[string]*atomic.Int64{}}
	m.item = stocktest.Item(t, m.Deps.Store, 1000)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for _, by := range mixable() {
		for range 2 { // as two processes would
			seller := strategytest.NewSeller(t, by, m.Deps)
			m.keep(ctx, by.Name, func() error { return m.sell(seller) })
		}
	}
	m.keep(ctx, "restock", m.restock)
	m.keep(ctx, "correct", m.correct)
	m.keep(ctx, "cancel", m.cancel)
	m.keep(ctx, "rename", m.rename)
	for range 2 {
		m.keep(ctx, "confirm", m.confirm)
	}
	m.keep(ctx, "release", m.release)
	m.keep(ctx, "expire", m.expire)
	// Those that go by the version seldom succeed where the machine is busy.
	for begun := time.Now(); ctx.Err() == nil && (time.Since(begun) < 2*time.Second || len(m.rare()) > 0); {
		time.Sleep(100 * time.Millisecond)
	}
	stop()
	m.working.Wait()
	if was, is := m.balance(1000); was != is {
		t.Errorf("there were and came %d units, but %d were sold or are left", was, is)
	}
	if rare := m.rare(); len(rare) > 0 {
		t.Errorf("%v succeeded fewer than %d times: this test mixes nothing", rare, often)
	}
}

// often is how often each is to succeed at least.
const often = 5

// rare names what has not succeeded often enough.
func (m *mixture) rare() (names []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, n := range m.done {
		if n.Load() < often {
			names = append(names, name)
		}
	}
	return names
}

// mixture is one item, and those who write to it. Its methods but keep and balance are safe for
// concurrent use.
type mixture struct {
	strategy.Deps
	t       *testing.T
	item    stock.Item
	working sync.WaitGroup

	keys  atomic.Int64
	names atomic.Int64
	mu    sync.Mutex               // guards the rest
	done  map[string]*atomic.Int64 // how often each has succeeded
	made  []stock.Order            // not cancelled
}

// keep does one thing again and again until ctx ends. It may be refused.
func (m *mixture) keep(ctx context.Context, name string, do func() error) {
	m.mu.Lock()
	if m.done[name] == nil {
		m.done[name] = &atomic.Int64{}
	}
	done := m.done[name]
	m.mu.Unlock()
	m.working.Go(func() {
		for ctx.Err() == nil {
			if done.Load() >= often && len(m.rare()) > 0 {
				time.Sleep(time.Millisecond) // lets those through that a busy machine always overtakes
				continue
			}
			switch err := do(); {
			case err == nil:
				done.Add(1)
			case !errors.Is(err, stock.ErrSoldOut) && !errors.Is(err, stock.ErrHeld) && !errors.Is(err, stock.ErrConflict) && !errors.Is(err, stock.ErrStale):
				m.t.Errorf("%s: %v", name, err)
			}
			time.Sleep(rand.N(50 * time.Millisecond))
		}
	})
}

func (m *mixture) sell(by *strategy.Seller) error {
	order, err := by.Sell(m.t.Context(), stock.Sale{ItemID: m.item.ID, Quantity: 1 + rand.Int64N(3), RequestID: "r", Shop: "test"})
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made = append(m.made, order)
	return nil
}

func (m *mixture) author() stock.Author {
	return stock.Author{Subject: "ann", IdempotencyKey: strconv.FormatInt(m.keys.Add(1), 10), RequestID: "r", Shop: "test"}
}

func (m *mixture) restock() error {
	_, err := m.Store.Restock(m.t.Context(), m.author(), m.item.ID, 20)
	return err
}

func (m *mixture) correct() error {
	seen, err := m.Store.Read(m.t.Context(), m.item.ID)
	if err != nil {
		return err
	}
	_, err = m.Store.Correct(m.t.Context(), m.author(), m.item.ID, func(is stock.Item) bool { return is == seen }, max(seen.Stock-5+rand.Int64N(11), 0))
	return err
}

func (m *mixture) cancel() error {
	m.mu.Lock()
	if len(m.made) == 0 {
		m.mu.Unlock()
		return stock.ErrConflict
	}
	order := m.made[0]
	m.made = m.made[1:]
	m.mu.Unlock()
	order, err := m.Store.Order(m.t.Context(), order.PublicID)
	if err == nil {
		_, err = m.Store.Cancel(m.t.Context(), m.author(), stock.Cancelled, order.Rows())
	}
	return err
}

func (m *mixture) hold(seconds int64) (id string, err error) {
	wanted := stock.Sale{ItemID: m.item.ID, Quantity: 1 + rand.Int64N(3), Subject: fmt.Sprint("ann", rand.N(5)), IdempotencyKey: m.author().IdempotencyKey, Holds: true}
	h, err := m.Store.Hold(m.t.Context(), wanted, seconds, terms)
	return h.PublicID, err
}

var terms = stock.Terms{Open: 1_000_000}

func (m *mixture) confirm() error {
	id, err := m.hold(60)
	if err != nil {
		return err
	}
	by := m.author()
	if rand.N(2) == 0 {
		if _, err := m.Store.Move(m.t.Context(), by, id, stock.BeginPayment(terms)); err != nil {
			return err
		}
	}
	_, err = m.Store.Confirm(m.t.Context(), by, id, id, stock.Sale{RequestID: "r", Shop: "test", Strategy: "conditional"}, terms)
	return err
}

func (m *mixture) release() error {
	id, err := m.hold(60)
	if err != nil {
		return err
	}
	_, err = m.Store.Move(m.t.Context(), m.author(), id, stock.Release("test"))
	return err
}

// expire makes a hold that is overdue at once, and ends it.
func (m *mixture) expire() error {
	_, err := m.hold(0)
	if err != nil {
		return err
	}
	_, _, _, err = m.Store.EndHolds(m.t.Context(), "test", 100)
	return err
}

func (m *mixture) rename() error {
	_, err := m.Store.Rename(m.t.Context(), m.author(), m.item.ID, nil, fmt.Sprint("name ", m.names.Add(1)))
	return err
}

// balance returns how many units there were and came, and how many are in orders that stand or are
// left.
func (m *mixture) balance(initial int64) (was, is int64) {
	m.t.Helper()
	changes, err := m.Store.Changes(m.t.Context(), m.item.ID)
	if err != nil {
		m.t.Fatal(err)
	}
	orders, err := m.Store.ItemOrders(m.t.Context(), m.item.ID)
	if err != nil {
		m.t.Fatal(err)
	}
	now, err := m.Store.View(m.t.Context(), m.item.ID)
	if err != nil {
		m.t.Fatal(err)
	}
	was, is = initial, now.Stock+now.Held
	for _, c := range changes {
		if c.Action == stock.Restocked || c.Action == stock.Corrected {
			was += c.StockAfter - c.StockBefore
		}
	}
	for _, o := range orders {
		if o.CancelledAt == nil {
			is += o.Quantity
		}
	}
	if now.Stock < 0 {
		m.t.Errorf("%d units are left", now.Stock)
	}
	return was, is
}

// TestFencedMayNotBeMixed restocks an item between the read and the write of a sale: fenced writes
// over it, and every mixable strategy keeps it.
func TestFencedMayNotBeMixed(t *testing.T) {
	for _, by := range strategy.All() {
		m := &mixture{Deps: strategytest.Deps(t), t: t}
		m.item = stocktest.Item(t, m.Deps.Store, 100)
		restocked := false
		ctx := sale.WithHook(t.Context(), func(_ context.Context, p sale.Point, _ []slog.Attr) {
			// for-update has the row from its read on.
			if p == sale.Write && !restocked && by.Name != "for-update" {
				restocked = true
				if err := m.restock(); err != nil {
					t.Error(err)
				}
			}
		})
		seller := strategytest.NewSeller(t, by, m.Deps)
		if _, err := seller.Sell(ctx, stock.Sale{ItemID: m.item.ID, Quantity: 1, RequestID: "r", Shop: "test"}); err != nil {
			t.Errorf("%s: %v", by.Name, err)
		}
		if was, is := m.balance(100); (was == is) != by.Mixable {
			t.Errorf("%s, mixable %t: there were and came %d units, %d were sold or are left", by.Name, by.Mixable, was, is)
		}
	}
}

// TestUnitsThatComeBackAreNotSoldOut has a sale that finds no unit, of which there is one when it is asked why.
func TestUnitsThatComeBackAreNotSoldOut(t *testing.T) {
	d := strategytest.Deps(t)
	item := stocktest.Item(t, d.Store, 1)
	for _, test := range []struct {
		refused int // how often
		want    error
	}{{2, stock.ErrConflict}, {1, nil}} {
		seller := strategy.New(strategy.Strategy{Build: func(strategy.Deps) (strategy.Guard, strategy.Decrement) {
			return strategy.Unguarded{}, func(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
				if test.refused--; test.refused >= 0 {
					return stock.Order{}, stock.ErrSoldOut
				}
				return store.Decrement(ctx, wanted)
			}
		}}, d)
		_, err := seller.Sell(t.Context(), stock.Sale{ItemID: item.ID, Quantity: 1, RequestID: "r", Shop: "test", Holds: true})
		if !errors.Is(err, test.want) {
			t.Errorf("%v, want %v", err, test.want)
		}
	}
}

// TestAnOrderBesideAnErrorIsNone: the id is there before the COMMIT, which may have failed.
func TestAnOrderBesideAnErrorIsNone(t *testing.T) {
	seller := &strategy.Seller{Guard: strategy.Unguarded{}, Decrement: func(context.Context, *stock.Store, stock.Sale) (stock.Order, error) {
		return stock.Order{ID: 1}, stock.ErrUnknown
	}}
	if order, err := seller.Sell(t.Context(), stock.Sale{ItemID: 1, Quantity: 1}); order.ID != 0 || !errors.Is(err, stock.ErrUnknown) {
		t.Errorf("order %d, %v", order.ID, err)
	}
}
