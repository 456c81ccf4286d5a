package strategytest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"stocklock/internal/stock"
	"stocklock/internal/strategy"
)

// baskets has the strategies sell several items in one sale. Any other strategy refuses them.
func baskets(t *testing.T, of []Subject) {
	d := Deps(t)
	for _, s := range of {
		t.Run(s.Name, func(t *testing.T) {
			if !s.Baskets {
				one := s.NewItem(t, d, 1)
				_, err := s.NewSeller(t, d).Sell(t.Context(), basket(stock.Line{ItemID: one.ID, Quantity: 1}, stock.Line{ItemID: one.ID + 1, Quantity: 1}))
				if !errors.Is(err, strategy.ErrOneItem) {
					t.Errorf("a basket: %v, want ErrOneItem", err)
				}
				return
			}
			t.Run("AllOrNothing", func(t *testing.T) { allOrNothing(t, s, d) })
			t.Run("Crossed", func(t *testing.T) { crossedBaskets(t, s, d) })
			t.Run("Limit", func(t *testing.T) { limited(t, s, d) })
		})
	}
}

func basket(lines ...stock.Line) stock.Sale {
	sale := stock.Sale{RequestID: "r", Shop: "test"}
	sale.SetLines(lines)
	return sale
}

// wantUnits compares the stock of items.
func wantUnits(t *testing.T, d strategy.Deps, items []stock.Item, want ...int64) {
	t.Helper()
	for i, item := range items {
		now, err := d.Store.Read(t.Context(), item.ID)
		if err != nil {
			t.Fatal(err)
		}
		if now.Stock != want[i] {
			t.Errorf("%d units are left of item %d, want %d", now.Stock, i+1, want[i])
		}
	}
}

// allOrNothing sells a basket, and then ones with lines that cannot be had.
func allOrNothing(t *testing.T, s Subject, d strategy.Deps) {
	seller := s.NewSeller(t, d)
	items := []stock.Item{s.NewItem(t, d, 5), s.NewItem(t, d, 5), s.NewItem(t, d, 2)}
	line := func(i int, quantity int64) stock.Line { return stock.Line{ItemID: items[i].ID, Quantity: quantity} }

	// In no order, and one item twice.
	order, err := seller.Sell(t.Context(), basket(line(2, 1), line(0, 2), line(1, 1), line(0, 1)))
	if err != nil {
		t.Fatalf("a basket: %v", err)
	}
	wantUnits(t, d, items, 2, 4, 1)
	again, err := d.Store.Order(t.Context(), order.PublicID)
	if err != nil || len(again.More) != 2 {
		t.Fatalf("its order: %+v, %v", again, err)
	}
	for i, row := range again.Rows() {
		want := [][3]int64{{3, 5, 2}, {1, 5, 4}, {1, 2, 1}}[i]
		if row.ItemID != items[i].ID || [3]int64{row.Quantity, row.StockRead, row.StockWritten} != want ||
			row.Strategy != s.Name || row.RequestID != "r" || (row.Token > 0) != (s.guarded()) {
			t.Errorf("row %d is %+v, want quantity, stock read and written %d", i+1, row, want)
		}
	}

	missing := items[2].ID + 1_000_000
	for range 2 { // the second time, some strategies suspect that they are sold out
		_, err = seller.Sell(t.Context(), basket(line(2, 2), stock.Line{ItemID: missing, Quantity: 1}, line(1, 5), line(0, 1)))
		lines, _ := errors.AsType[stock.LineErrors](err)
		named := map[uint64]error{}
		for _, line := range lines {
			named[line.ItemID] = line.Err
		}
		if len(lines) != 3 || !errors.Is(named[items[1].ID], stock.ErrSoldOut) || !errors.Is(named[items[2].ID], stock.ErrSoldOut) || !errors.Is(named[missing], stock.ErrNotFound) {
			t.Errorf("a basket with two items sold out and one that does not exist: %v", err)
		}
		wantUnits(t, d, items, 2, 4, 1)
	}
	if _, err := seller.Sell(t.Context(), basket(line(0, 2), line(1, 4), line(2, 1))); err != nil {
		t.Errorf("the last units: %v", err)
	}
	wantUnits(t, d, items, 0, 0, 0)
}

// crossedBaskets has many customers take the same items in all orders, from two sellers, as of two
// processes, beside restocks and cancellations. Nobody meets a deadlock, and the units balance.
func crossedBaskets(t *testing.T, s Subject, d strategy.Deps) {
	const customers, each, units = 8, 6, 40
	sellers := []*strategy.Seller{s.NewSeller(t, d), s.NewSeller(t, d)}
	var items []stock.Item
	for range 4 {
		items = append(items, s.NewItem(t, d, units))
	}
	var mu sync.Mutex
	want := []int64{units, units, units, units}
	var wg sync.WaitGroup
	for n := range customers {
		wg.Go(func() {
			for i := range each {
				var lines []stock.Line
				chosen := rand.Perm(len(items))[:2+rand.IntN(len(items)-1)]
				for _, at := range chosen {
					lines = append(lines, stock.Line{ItemID: items[at].ID, Quantity: 1 + rand.Int64N(2)})
				}
				sale := basket(lines...)
				sale.IdempotencyKey = fmt.Sprintf("%s-%d-%d", t.Name(), n, i)
				order, err := sellers[n%2].Sell(t.Context(), sale)
				if err != nil && !errors.Is(err, stock.ErrSoldOut) {
					t.Errorf("a basket: %v", err)
				}
				if err != nil {
					continue
				}
				cancelled := i%3 == 0 && s.Mixable
				if cancelled {
					by := stock.Author{Subject: "ann", IdempotencyKey: sale.IdempotencyKey, RequestID: "r", Shop: "test"}
					if order, err = d.Store.Order(t.Context(), order.PublicID); err == nil {
						_, err = d.Store.Cancel(t.Context(), by, stock.Cancelled, order.Rows())
					}
					if err != nil {
						t.Errorf("cancel: %v", err)
					}
				}
				mu.Lock()
				for _, line := range sale.Lines() {
					if at := slices.IndexFunc(items, func(i stock.Item) bool { return i.ID == line.ItemID }); !cancelled {
						want[at] -= line.Quantity
					}
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	wantUnits(t, d, items, want...)
}

// limited has a customer buy as many units as it may have, from many requests at once.
func limited(t *testing.T, s Subject, d strategy.Deps) {
	const limit = 3
	seller := s.NewSeller(t, d)
	items := []stock.Item{s.NewItem(t, d, 100), s.NewItem(t, d, 100)}
	both := func(subject string) stock.Sale {
		sale := basket(stock.Line{ItemID: items[0].ID, Quantity: 1}, stock.Line{ItemID: items[1].ID, Quantity: 1})
		sale.Subject, sale.Limit = subject, limit
		return sale
	}
	first := both("ann")
	first.More = nil
	made, err := seller.Sell(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	sell := func(wanted int, of func(i int) stock.Sale) {
		t.Helper()
		var wg sync.WaitGroup
		outcomes := make([]error, 8)
		for i := range outcomes {
			wg.Go(func() { _, outcomes[i] = seller.Sell(t.Context(), of(i)) })
		}
		wg.Wait()
		sold := 0
		for _, err := range outcomes {
			switch {
			case err == nil:
				sold++
			case !errors.Is(err, stock.ErrLimit):
				t.Errorf("a sale: %v, want it made or refused by the limit", err)
			}
		}
		if sold != wanted {
			t.Errorf("%d sales were made at once, want %d", sold, wanted)
		}
	}
	// Single lines and baskets; the customer has one unit of the first item.
	sell(limit-1, func(i int) stock.Sale {
		sale := both("ann")
		if i%2 == 0 {
			sale.More = nil
		}
		return sale
	})
	sell(limit, func(int) stock.Sale { return both("bob") })
	if !s.Mixable {
		return
	}
	by := stock.Author{Subject: "staff", IdempotencyKey: t.Name(), RequestID: "r", Shop: "test"}
	if made, err = d.Store.Order(t.Context(), made.PublicID); err == nil {
		_, err = d.Store.Cancel(t.Context(), by, stock.Cancelled, made.Rows())
	}
	if err != nil {
		t.Fatal(err)
	}
	sell(1, func(int) stock.Sale { return first }) // what was cancelled may be bought again
}
