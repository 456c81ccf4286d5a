package strategy

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
)

var batched = Strategy{
	Name:         "batched",
	Doc:          "group commit in the shop: the sales that wait while a transaction commits are sold together by the next one",
	Source:       "group commit, DeWitt et al., 1984; flat combining, Hendler et al., 2010",
	Guard:        "nothing",
	Decrement:    "for all that wait: UPDATE ... SET stock = stock - sum WHERE stock >= sum, one INSERT",
	Telling:      "contention",
	Servers:      EveryServer,
	WithoutRedis: true,
	FindsRepeats: true,
	Properties:   databaseLock,
	Mixable:      true,
	Baskets:      &basketsInRows,
	Build: func(d Deps) (Guard, Decrement) {
		b := &batcher{store: d.Store, Options: d.Options, sold: d.Batched, queues: map[uint64][]*waiter{}}
		b.sellBasket = retryConflicts(d.Options, sellConditionally(&b.soldOut))
		return Unguarded{}, b.sell
	},
}

// maxBatch bounds the length of a batch's INSERT, and the time that its sales wait for each other.
const maxBatch = 256

// batcher sells in batches. It has one queue for each item that is being sold. A sale that finds no
// queue becomes the leader. The leader takes all waiting sales, sells them in one transaction,
// makes the next sale in the queue the leader, and answers. There is no timer: the next batch
// gathers while one commits. A batcher is safe for concurrent use.
type batcher struct {
	Options
	store   *stock.Store
	sold    func(size int, waited time.Duration) // may be nil
	soldOut soldOutItems
	// sellBasket sells a basket in a transaction of its own: a batch has one item.
	sellBasket Decrement

	mu     sync.Mutex
	queues map[uint64][]*waiter // guarded by mu; by item; there is one while the item has a leader
}

// waiter is a sale in a queue.
type waiter struct {
	ctx   context.Context
	sale  stock.Sale
	since time.Time

	queued bool               // it found a leader
	leads  bool               // guarded by batcher.mu
	lead   chan struct{}      // closed when it is to lead
	done   chan stock.Outcome // buffered: takes its outcome
}

func (b *batcher) sell(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	if len(wanted.More) > 0 {
		return b.sellBasket(ctx, store, wanted)
	}
	sale.At(ctx, sale.Read)
	sale.At(ctx, sale.Write)
	if ctx.Err() != nil {
		return stock.Order{}, context.Cause(ctx)
	}
	w := &waiter{ctx: ctx, sale: wanted, since: time.Now(), lead: make(chan struct{}), done: make(chan stock.Outcome, 1)}
	if b.enter(w); w.queued {
		sale.At(ctx, sale.Waiting)
	}
	patience := time.NewTimer(b.Wait)
	defer patience.Stop()
	var err error
	select {
	case <-w.lead:
		b.leadBatch(w)
	case outcome := <-w.done:
		return written(ctx, outcome.Order, outcome.Err)
	case <-patience.C:
		err = ErrBusy
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		if b.leave(w) {
			return stock.Order{}, err
		}
		select { // too late to leave: it leads, or is being sold
		case <-w.lead:
			b.leadBatch(w)
		case outcome := <-w.done:
			return written(ctx, outcome.Order, outcome.Err)
		}
	}
	outcome := <-w.done
	return written(ctx, outcome.Order, outcome.Err)
}

// enter puts the sale into its item's queue, and makes it the leader if there is none.
func (b *batcher) enter(w *waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, w.queued = b.queues[w.sale.ItemID]
	b.queues[w.sale.ItemID] = append(b.queues[w.sale.ItemID], w)
	if !w.queued {
		w.leads = true
		close(w.lead)
	}
}

// leave takes the sale out of its queue. It returns false if the sale leads or is being sold.
func (b *batcher) leave(w *waiter) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	queue := b.queues[w.sale.ItemID]
	at := slices.Index(queue, w)
	if at < 0 || w.leads {
		return false
	}
	b.queues[w.sale.ItemID] = slices.Delete(queue, at, at+1)
	return true
}

// leadBatch sells one batch. The leader is in it, at the front.
func (b *batcher) leadBatch(leader *waiter) {
	itemID := leader.sale.ItemID
	batch := b.take(itemID)
	outcomes := make([]stock.Outcome, len(batch))
	for i := range outcomes {
		outcomes[i].Err = errLeader
	}
	defer func() { // also where the leader panics
		b.handOn(itemID)
		for i, w := range batch {
			w.done <- outcomes[i]
		}
	}()
	b.sellAll(leader.ctx, itemID, batch, outcomes)
}

var errLeader = errors.New("strategy: the leader of the batch failed")

// take takes the next batch out of the queue.
func (b *batcher) take(itemID uint64) []*waiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	queue := b.queues[itemID]
	n := min(len(queue), maxBatch)
	// The rest is copied: the batch keeps the array.
	b.queues[itemID] = slices.Clone(queue[n:])
	return queue[:n]
}

// handOn makes the first sale in the queue the leader, or ends an empty queue.
func (b *batcher) handOn(itemID uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	queue := b.queues[itemID]
	if len(queue) == 0 {
		delete(b.queues, itemID)
		return
	}
	queue[0].leads = true
	close(queue[0].lead)
}

// sellAll sells the batch and sets its outcomes. It goes on when the leader's ctx ends.
func (b *batcher) sellAll(ctx context.Context, itemID uint64, batch []*waiter, outcomes []stock.Outcome) {
	ctx = context.WithoutCancel(ctx)
	failAll := func(indices []int, err error) {
		for _, i := range indices {
			outcomes[i].Err = err
		}
	}
	var wanted []int                // to be sold
	repeats := map[int]int{}        // sales under the key of an earlier one of the batch
	underKey := map[stock.Key]int{} // the first sale under each key
	for i, w := range batch {
		if w.ctx.Err() != nil {
			outcomes[i].Err = context.Cause(w.ctx)
			continue
		}
		if key := w.sale.Key(); key.IdempotencyKey != "" {
			if first, again := underKey[key]; again {
				repeats[i] = first
				continue
			}
			underKey[key] = i
		}
		wanted = append(wanted, i)
	}
	wanted, err := b.known(ctx, batch, wanted, outcomes)
	if err == nil && len(wanted) > 0 {
		err = b.sellWanted(ctx, itemID, batch, wanted, outcomes)
	}
	if err != nil {
		failAll(wanted, err)
	}
	for i, first := range repeats {
		outcomes[i] = repeated(outcomes[first])
	}
}

// known sets the outcomes of sales whose key already has an order, and returns the others.
func (b *batcher) known(ctx context.Context, batch []*waiter, wanted []int, outcomes []stock.Outcome) ([]int, error) {
	var keys []stock.Key
	for _, i := range wanted {
		if key := batch[i].sale.Key(); key.IdempotencyKey != "" {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return wanted, nil
	}
	orders, err := b.store.OrdersByKeys(ctx, keys)
	if err != nil {
		return wanted, err
	}
	return slices.DeleteFunc(wanted, func(i int) bool {
		order, known := orders[batch[i].sale.Key()]
		if known {
			outcomes[i] = repeated(stock.Outcome{Order: order})
		}
		return known
	}), nil
}

// repeated is the outcome of a sale under the key of another one. It has no order. The caller looks
// up the order, as after any [stock.ErrRepeated], and so knows that it was made before.
func repeated(first stock.Outcome) stock.Outcome {
	if first.Err == nil {
		return stock.Outcome{Err: stock.ErrRepeated}
	}
	return first
}

// sellWanted sells these of the batch. An error is the outcome of all of them.
func (b *batcher) sellWanted(ctx context.Context, itemID uint64, batch []*waiter, wanted []int, outcomes []stock.Outcome) error {
	sales := make([]stock.Sale, len(wanted))
	least := int64(math.MaxInt64)
	for n, i := range wanted {
		sales[n] = batch[i].sale
		least = min(least, sales[n].Quantity)
	}
	if b.sold != nil {
		b.sold(len(sales), time.Since(batch[wanted[0]].since))
	}
	if err := b.soldOut.check(ctx, b.store, stock.Sale{ItemID: itemID, Quantity: least}); err != nil {
		return err
	}
	lost := func() {
		if !batch[0].queued { // the leader; the others have passed it when they queued
			sale.At(batch[0].ctx, sale.Waiting)
		}
	}
	made, err := againstConflicts(ctx, b.Options, b.Retry, lost, func() ([]stock.Outcome, error) {
		return b.store.DecrementBatch(ctx, itemID, sales)
	})
	if err != nil {
		return err
	}
	for n, i := range wanted {
		outcomes[i] = made[n]
		b.soldOut.note(sales[n], made[n].Err)
	}
	return nil
}
