// Package mine gathers sales for two milliseconds. It is right, and a lone customer waits for
// nothing.
package mine

import (
	"context"
	"sync"
	"time"

	"stocklock/internal/stock"
	"stocklock/internal/strategy"
)

// Build makes the strategy mine: no guard, and a decrement.
func Build(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
	return strategy.Unguarded{}, (&shop{queues: map[uint64][]*waiting{}}).sell
}

// shop has a queue for each item that is being sold.
type shop struct {
	mu     sync.Mutex
	queues map[uint64][]*waiting // guarded by mu; an item has one while somebody sells it
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
		time.Sleep(2 * time.Millisecond)
		s.mu.Lock()
		batch := s.queues[item]
		if len(batch) == 0 {
			delete(s.queues, item)
			s.mu.Unlock()
			return
		}
		s.queues[item] = []*waiting{}
		s.mu.Unlock()
		sellBatch(ctx, store, item, batch)
	}
}

// sellBatch sells to all of a batch in one transaction, and answers after its commit.
func sellBatch(ctx context.Context, store *stock.Store, item uint64, batch []*waiting) {
	sales := make([]stock.Sale, len(batch))
	for i, w := range batch {
		sales[i] = w.sale
	}
	outcomes, err := store.DecrementBatch(ctx, item, sales)
	for i, w := range batch {
		if err != nil {
			w.outcome <- stock.Outcome{Err: err}
			continue
		}
		w.outcome <- outcomes[i]
	}
}
