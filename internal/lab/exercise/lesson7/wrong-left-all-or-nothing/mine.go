// Package mine answers a batch as sold out that does not fit as a whole: units are left.
package mine

import (
	"context"
	"errors"
	"sync"

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

// sell puts the sale into its item's queue. Who finds no queue sells for all, until nobody waits.
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
		sellBatch(ctx, store, item, batch)
	}
}

// errTooMany ends a transaction that wants more than there is.
var errTooMany = errors.New("the batch does not fit")

// sellBatch takes the sum of a batch, and answers after the commit.
func sellBatch(ctx context.Context, store *stock.Store, item uint64, batch []*waiting) {
	orders := make([]stock.Order, len(batch))
	err := store.Transact(ctx, func(tx stock.Tx) error {
		sum := int64(0)
		for _, w := range batch {
			sum += w.sale.Quantity
		}
		left, ok, err := tx.Take(item, sum)
		if err != nil {
			return err
		}
		if !ok {
			return errTooMany
		}
		read := left + sum
		for i, w := range batch {
			if orders[i], err = tx.Record(w.sale, read, read-w.sale.Quantity); err != nil {
				return err
			}
			read -= w.sale.Quantity
		}
		return nil
	})
	if errors.Is(err, errTooMany) {
		err = stock.ErrSoldOut
	}
	for i, w := range batch {
		w.outcome <- stock.Outcome{Order: orders[i], Err: err}
	}
}
