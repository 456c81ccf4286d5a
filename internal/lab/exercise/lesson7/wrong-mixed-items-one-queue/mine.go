// Package mine has one queue for all items, and sells every sale in it as one of the first item.
package mine

import (
	"context"
	"sync"

	"stocklock/internal/stock"
	"stocklock/internal/strategy"
)

// Build makes the strategy mine: no guard, and a decrement.
func Build(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
	return strategy.Unguarded{}, new(shop).sell
}

// shop has one queue.
type shop struct {
	mu      sync.Mutex
	queue   []*waiting // guarded by mu
	selling bool       // guarded by mu
}

type waiting struct {
	sale    stock.Sale
	outcome chan stock.Outcome
}

// sell puts the sale into the queue. If no sale is selling, it sells for all, until none
// waits.
func (s *shop) sell(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	w := &waiting{wanted, make(chan stock.Outcome, 1)}
	s.mu.Lock()
	s.queue = append(s.queue, w)
	first := !s.selling
	s.selling = true
	s.mu.Unlock()
	if first {
		go s.sellAll(context.WithoutCancel(ctx), store)
	}
	o := <-w.outcome
	return o.Order, o.Err
}

// sellAll sells batch after batch: while one commits, the next one gathers.
func (s *shop) sellAll(ctx context.Context, store *stock.Store) {
	for {
		s.mu.Lock()
		batch := s.queue
		s.queue = nil
		if len(batch) == 0 {
			s.selling = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		sellBatch(ctx, store, batch[0].sale.ItemID, batch)
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
