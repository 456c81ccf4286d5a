package stock_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"stocklock/internal/stock"
	"stocklock/internal/stock/stocktest"
)

// sellSeveral takes one unit of each item in one transaction, in the order in which they are given.
// beforeNext is called between two items.
func sellSeveral(ctx context.Context, store *stock.Store, items []uint64, beforeNext func()) error {
	return store.Transact(ctx, func(tx stock.Tx) error {
		for i, item := range items {
			if i > 0 {
				beforeNext()
			}
			left, err := tx.Take(item, 1)
			if err != nil {
				return err
			}
			if _, err := tx.Record(stock.Sale{ItemID: item, Quantity: 1, RequestID: "r", Strategy: "test", Shop: "shop"}, left+1, left); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestSeveralItemsInOneSale sells two items to many, in the order of the items' ids: all sales are
// made. In opposite orders two sales wait for each other, and the database ends one of them.
func TestSeveralItemsInOneSale(t *testing.T) {
	const customers = 40
	store := stocktest.Open(t)
	var items []uint64
	for range 2 {
		item, err := store.CreateItem(t.Context(), "item", customers+1)
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, item.ID)
	}
	opposite := slices.Clone(items)
	slices.Reverse(opposite)

	t.Run("in the order of their ids", func(t *testing.T) {
		var selling sync.WaitGroup
		for range customers {
			selling.Go(func() {
				if err := sellSeveral(t.Context(), store, items, func() {}); err != nil {
					t.Error(err)
				}
			})
		}
		selling.Wait()
		for _, item := range items {
			if left := stockOf(t, store, item); left != 1 {
				t.Errorf("%d left of item %d, want 1", left, item)
			}
		}
	})
	t.Run("in opposite orders", func(t *testing.T) {
		var both, selling sync.WaitGroup
		both.Add(2)
		meet := func() { both.Done(); both.Wait() }
		outcomes := make([]error, 2)
		for i, order := range [][]uint64{items, opposite} {
			selling.Go(func() { outcomes[i] = sellSeveral(t.Context(), store, order, meet) })
		}
		selling.Wait()
		made := slices.Index(outcomes, nil)
		if made < 0 || !errors.Is(outcomes[1-made], stock.ErrConflict) {
			t.Errorf("outcomes: %v, want one sale and one conflict", outcomes)
		}
		if n := store.Deadlocks(); n != 1 {
			t.Errorf("%d deadlocks were counted, want 1", n)
		}
		for _, item := range items {
			if left := stockOf(t, store, item); left != 0 {
				t.Errorf("%d left of item %d, want 0", left, item)
			}
		}
	})
}
