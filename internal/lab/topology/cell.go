package topology

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy/declared"
)

// cell is one strategy of the group. Its methods are called by one goroutine at a time.
type cell struct {
	*group
	of   declared.Strategy
	item audit.Run
	asks int // purchases so far, to name them

	mu      sync.Mutex // guards the rest
	buyers  []*buyer
	notes   []explain.ServersNote
	reader  *buyer                   // the sale that was held when it had read; nil for none
	atRead  []explain.DatabaseServer // what the servers said of it then
	stuck   bool                     // nobody was sold anything any more
	problem error                    // of the harness
}

// buyer is a customer who wants some units once.
type buyer struct {
	cell     *cell
	shop     int
	request  string
	quantity int64
	server   int // that the shop was led to
	sent     time.Time

	done     chan struct{} // closed when the rest is there
	answer   load.Answer
	answered time.Time
}

// ask sends the order of a new customer to a shop. With a point, the sale is held there until release.
func (c *cell) ask(ctx context.Context, shop int, quantity int64, at sale.Point) *buyer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asks++
	b := &buyer{
		cell: c, shop: shop, quantity: quantity, request: fmt.Sprintf("%d-%d", c.item.ItemID, c.asks), server: c.ledTo(shop), sent: time.Now(),
		done: make(chan struct{}),
	}
	c.buyers = append(c.buyers, b)
	order := load.Order{
		Shop: c.shops[shop].URL, ItemID: c.item.ItemID, Quantity: int(quantity), RequestID: b.request, Strategy: c.of.Name, Run: c.item.ID,
	}
	if at != "" {
		order.Fault, order.Lease = labmode.Fault{Point: at, Action: labmode.Hold, For: labmode.MaxDuration}, labmode.MaxDuration
	}
	go func() {
		b.answer = load.Send(ctx, order)
		b.answered = time.Now()
		close(b.done)
	}()
	return b
}

// buy is ask, and the outcome.
func (c *cell) buy(ctx context.Context, shop int, quantity int64) load.Outcome {
	b := c.ask(ctx, shop, quantity, "")
	<-b.done
	return b.answer.Outcome
}

func (b *buyer) isAnswered() bool {
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// held reports whether the sale is at the point where it is held.
func (b *buyer) held() bool {
	return b.cell.points.Count(func(e labmode.Event) bool { return e.Request == b.request && e.Facts["fault"] != nil }) > 0
}

// release lets a sale go on that is held. Of any other it does nothing.
func (b *buyer) release(ctx context.Context) error {
	if !b.held() {
		return nil
	}
	return load.Release(ctx, b.cell.shops[b.shop].URL, b.request)
}

// sell sells so many units, one after the other, at the first shop: others may have a node of their own, which
// is behind.
func (c *cell) sell(ctx context.Context, units int) error {
	for range units {
		if got := c.buy(ctx, 0, 1); got != load.Sold {
			return fmt.Errorf("a customer before the failure was answered with %s: %s", got, c.buyers[len(c.buyers)-1].answer.Body)
		}
	}
	return nil
}

// The rest of the stock is sold to customers who come again when they are kept out, each so often at most.
const (
	mostAsks   = 40
	askAgainIn = 50 * time.Millisecond
)

// sellOut sells what is left, one unit after the other, at all shops in turn, until two customers in a row were
// answered as sold out.
func (c *cell) sellOut(ctx context.Context) error {
	refused, again := 0, 0
	for n := 0; refused < 2; n++ {
		switch got := c.buy(ctx, n%len(c.shops), 1); got {
		case load.Sold:
			refused, again = 0, 0
		case load.SoldOut:
			refused++
		default:
			if again++; again > mostAsks {
				c.stuck = true
				return nil
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(askAgainIn):
			}
		}
		if int64(n) > 8*c.item.InitialStock+mostAsks {
			return nil // the counts say enough
		}
	}
	return nil
}

// settled is how long nothing may have changed before a strategy that counts in Redis has written all that it is
// going to write: a worker takes over what another one has not written after a lease.
const settled = 3 * Lease

// settle waits until an order was written for every unit that was counted, or nothing is written any more.
func (c *cell) settle(ctx context.Context) error {
	if !c.of.Counts() {
		return nil
	}
	last, since := int64(-1), time.Now()
	return c.await(ctx, "nothing is written any more", func() (bool, error) {
		counts, err := audit.Count(ctx, c.store, c.item)
		if counts.Sold != last {
			last, since = counts.Sold, time.Now()
		}
		return err == nil && (counts.Remaining <= 0 || time.Since(since) > settled), err
	})
}

// note adds what a server did or met to the record of the cell.
func (c *cell) note(server int, what explain.Phrase, f explain.Facts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes = append(c.notes, explain.ServersNote{At: time.Now(), Server: server, What: explain.Text{Phrase: what, Facts: f}})
}

// conclude counts and judges a cell. failed is why the play of the group could not be played, nil where it could.
func (c *cell) conclude(ctx context.Context, failed error, r *trial.Result) error {
	if err := errors.Join(failed, c.problem); err != nil {
		r.Conclude(verdict.Failed("%v", err))
		return nil
	}
	facts, orders, err := c.count(ctx, r)
	if err != nil {
		return err
	}
	r.Conclude(facts.Verdict())
	c.explain(r, orders)
	return nil
}
