package strategy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
)

var batched = Strategy{
	Name:         "batched",
	Doc:          "group commit in the shop: the sales that wait while a transaction commits are sold together by the next one",
	WithoutRedis: true,
	FindsRepeats: true,
	Mixable:      true,
	Baskets:      true,
	Build: func(d Deps) (Guard, Decrement) {
		b := &batcher{store: d.Store, Options: d.Options, sold: d.Batched, refusals: d.refusals, queues: map[uint64][]*waiter{}}
		b.sellBasket = RetryConflicts(d.Options, sellConditionally)
		return Unguarded{}, b.sell
	},
}

// maxBatch bounds the length of a batch's INSERT, and the time that its sales wait for each other.
const maxBatch = 256

// batcher sells in batches. It has one queue for each item that is being sold. A sale that finds no
// queue becomes the leader. The leader takes all waiting sales, sells them in one transaction,
// makes the next sale in the queue the leader, and answers. There is no timer: the next batch gathers
// while one commits, and while its leader waits for the row of the item, which other shops sell, too.
// A batcher is safe for concurrent use.
type batcher struct {
	Options
	store *stock.Store
	sold  func(size int, waited time.Duration) // may be nil
	// refusals are looked at once for a batch, and for a basket or a limited customer before that.
	refusals *refusals
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
	if len(wanted.More) > 0 || b.refusals.isLimited(wanted) {
		if err := b.refusals.check(ctx, store, wanted); err != nil {
			return stock.Order{}, err
		}
	}
	if len(wanted.More) > 0 {
		order, err := b.sellBasket(ctx, store, wanted)
		b.refusals.note(wanted, err)
		return order, err
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
	lead, gone := w.lead, ctx.Done()
	for {
		select {
		case outcome := <-w.done:
			return Written(ctx, outcome.Order, outcome.Err)
		case <-lead:
			lead = nil
			b.leadBatch(w)
		case <-patience.C:
			if b.leave(w) {
				return stock.Order{}, ErrBusy
			}
		case <-gone:
			if b.leave(w) {
				return stock.Order{}, context.Cause(ctx)
			}
			gone = nil // too late: it leads, or is being sold
		}
	}
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
	batch := &batch{}
	itemID := leader.sale.ItemID
	defer func() { // also where the leader panics
		b.handOn(itemID)
		for i, w := range batch.sales {
			w.done <- batch.outcomes[i]
		}
	}()
	batch.add(b.take(itemID, maxBatch))
	// It goes on when the leader's ctx ends, and waits no longer for a connection than other sales.
	b.sellAll(stock.WithPatience(context.WithoutCancel(leader.ctx), b.Wait), itemID, batch)
}

var errLeader = errors.New("strategy: the leader of the batch failed")

// take takes up to most sales out of the queue.
func (b *batcher) take(itemID uint64, most int) []*waiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	queue := b.queues[itemID]
	n := min(len(queue), most)
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

// batch is what is sold in one transaction.
type batch struct {
	sales    []*waiter
	outcomes []stock.Outcome // of each sale

	// Indices of sales, as wanted has left them.
	first   []int       // the first under each key, and those without one
	repeats map[int]int // sales under the key of an earlier one of the batch
}

// add adds sales.
func (b *batch) add(more []*waiter) {
	for _, w := range more {
		b.sales, b.outcomes = append(b.sales, w), append(b.outcomes, stock.Outcome{Err: errLeader})
	}
}

// wanted returns the sales of first. It leaves out those whose requests are over: they would be sold after the time
// within which a shop says what became of a request.
func (b *batch) wanted() []stock.Sale {
	wanted, underKey := make([]stock.Sale, 0, len(b.sales)), map[stock.Key]int{}
	b.first, b.repeats = b.first[:0], map[int]int{}
	for i, w := range b.sales {
		if w.ctx.Err() != nil {
			b.outcomes[i].Err = context.Cause(w.ctx)
			continue
		}
		if key := w.sale.Key(); key.IdempotencyKey != "" {
			if first, again := underKey[key]; again {
				b.repeats[i] = first
				continue
			}
			underKey[key] = i
		}
		b.first, wanted = append(b.first, i), append(wanted, w.sale)
	}
	return wanted
}

// repeated is the outcome of the i-th sale, which is under the key of an earlier one of the batch. What is refused
// for its quantity refuses no other quantity: that is tried once more.
func (b *batch) repeated(i, first int) stock.Outcome {
	made := b.outcomes[first]
	switch {
	case made.Err == nil:
		return stock.Outcome{Err: stock.RepeatedError{Order: made.Order}}
	case b.sales[i].sale.Quantity != b.sales[first].sale.Quantity && (errors.Is(made.Err, stock.ErrSoldOut) || errors.Is(made.Err, stock.ErrLimit)):
		return stock.Outcome{Err: errTryAgain}
	}
	return made
}

// sellAll sells the batch and sets its outcomes. An error is the outcome of all sales.
func (b *batcher) sellAll(ctx context.Context, itemID uint64, batch *batch) {
	if likely := batch.wanted(); len(likely) > 0 {
		if err := b.sellFirst(ctx, itemID, batch, likely); err != nil {
			for _, i := range batch.first {
				batch.outcomes[i] = stock.Outcome{Err: err}
			}
		}
	}
	for i, first := range batch.repeats {
		batch.outcomes[i] = batch.repeated(i, first)
	}
}

// sellFirst sells the first sale under each key, also of those that join the batch while it waits for the
// row.
func (b *batcher) sellFirst(ctx context.Context, itemID uint64, batch *batch, likely []stock.Sale) error {
	waited := time.Since(batch.sales[batch.first[0]].since)
	least := slices.MinFunc(likely, func(one, other stock.Sale) int { return cmp.Compare(one.Quantity, other.Quantity) })
	looking, cancel := context.WithTimeout(ctx, b.Wait)
	defer cancel()
	if err := b.refusals.check(looking, b.store, stock.Sale{ItemID: itemID, Quantity: least.Quantity, Holds: least.Holds}); err != nil {
		if errors.Is(err, context.DeadlineExceeded) && b.store.Crowded() { // as a batch that gets no connection
			err = fmt.Errorf("%w: %w", ErrBusy, err)
		}
		return err
	}
	lost := func() {
		if leader := batch.sales[0]; !leader.queued { // the others have passed it when they queued
			sale.At(leader.ctx, sale.Waiting)
		}
	}
	gather := func() []stock.Sale {
		batch.add(b.take(itemID, maxBatch-len(batch.sales)))
		likely = batch.wanted()
		return likely
	}
	made, err := againstConflicts(ctx, b.Options, b.Retry, lost, func() ([]stock.Outcome, error) {
		return b.store.DecrementOpenBatch(ctx, itemID, likely, gather)
	})
	if err != nil {
		return err
	}
	repeats := 0
	for n, i := range batch.first {
		batch.outcomes[i] = made[n]
		b.refusals.note(batch.sales[i].sale, made[n].Err)
		if errors.Is(made[n].Err, stock.ErrRepeated) {
			repeats++
		}
	}
	if b.sold != nil && len(made) > repeats {
		b.sold(len(made)-repeats, waited)
	}
	return nil
}

// isLimited reports whether the customer of a sale had reached the limit of one of its items.
func (r *refusals) isLimited(wanted stock.Sale) bool {
	return slices.ContainsFunc(r.suspects(wanted), func(one refused) bool { return one.limited })
}
