// Package mine counts the stock in the memory of its process: three shops sell it three times.
package mine

import (
	"context"
	"sync"

	"stocklock/internal/stock"
	"stocklock/internal/strategy"
)

// Build makes the strategy mine: no guard, and a decrement.
func Build(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
	return strategy.Unguarded{}, (&shop{queues: map[uint64][]*waiting{}, left: map[uint64]int64{}}).sell
}

// shop has a queue for each item that is being sold.
type shop struct {
	mu     sync.Mutex
	queues map[uint64][]*waiting // guarded by mu; an item has one while somebody sells it
	left   map[uint64]int64      // what this process believes to be in stock
}

type waiting struct {
	sale    stock.Sale
	outcome chan stock.Outcome
}

// sell puts the sale into its item's queue. A sale that finds no queue sells for all, until none
// waits.
func (s *shop) sell(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	w := &waiting{wanted, make(chan stock.Outcome, 1)}
	s.mu.Lock()
	queue, sold := s.queues[wanted.ItemID]
	s.queues[wanted.ItemID] = append(queue, w)
	s.mu.Unlock()
	if !sold {
		go s.sellAll(context.WithoutCancel(ctx), store, wanted.ItemID)
	}
	o := <-w.outcome
	return o.Order, o.Err
}

// sellAll sells batch after batch: while one commits, the next one gathers.
func (s *shop) sellAll(ctx context.Context, store *stock.Store, item uint64) {
	for {
		s.mu.Lock()
		batch := s.queues[item]
		if len(batch) == 0 {
			delete(s.queues, item)
			s.mu.Unlock()
			return
		}
		s.queues[item] = []*waiting{}
		s.mu.Unlock()
		s.sellBatch(ctx, store, item, batch)
	}
}

// sellBatch takes from its own count and writes what is left of it.
func (s *shop) sellBatch(ctx context.Context, store *stock.Store, id uint64, batch []*waiting) {
	left, known := s.left[id]
	if !known {
		item, err := store.Read(ctx, id)
		if err != nil {
			for _, w := range batch {
				w.outcome <- stock.Outcome{Err: err}
			}
			return
		}
		left = item.Stock
	}
	outcomes := make([]stock.Outcome, len(batch))
	after := left
	for _, w := range batch {
		if after >= w.sale.Quantity {
			after -= w.sale.Quantity
		}
	}
	err := store.Transact(ctx, func(tx stock.Tx) error {
		if _, _, err := tx.Exec("UPDATE items SET stock = ? WHERE id = ?", after, id); err != nil {
			return err
		}
		for i, w := range batch {
			if left < w.sale.Quantity {
				outcomes[i].Err = stock.ErrSoldOut
				continue
			}
			order, err := tx.Record(w.sale, left, left-w.sale.Quantity)
			if err != nil {
				return err
			}
			outcomes[i].Order, left = order, left-w.sale.Quantity
		}
		return nil
	})
	s.left[id] = left
	for i, w := range batch {
		if err != nil {
			outcomes[i] = stock.Outcome{Err: err}
		}
		w.outcome <- outcomes[i]
	}
}
