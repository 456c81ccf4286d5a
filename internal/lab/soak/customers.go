package soak

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/shop/labmode"
)

// purchase is one customer's attempt to buy one unit, under one idempotency key.
type purchase struct {
	key      string
	lane     int
	item     audit.Run
	tries    int
	doubtful bool      // a try may have sold, or may still sell
	doubted  time.Time // when the last such try was given up
	outcome  load.Outcome
	order    uint64   // the id in the 201
	publicID string   // the public one
	replayed bool     // the 201 answered a repeat
	story    []string // what each try was answered

	due   time.Time // of the next try
	shop  int       // of the last try
	fault *placed
}

// open reports whether the customer still wants an answer.
func (p *purchase) open() bool { return p.outcome == "" }

// lane is one strategy and what it sells.
type lane struct {
	shelf *shelf
	by    string // the strategy's name
}

// placed is a fault that is injected into the next purchase.
type placed struct {
	labmode.Fault
	shop  int
	ended chan struct{} // closed when the request is over
}

// customers buy one unit each. Without an answer, or with one that leaves the outcome open, they
// repeat the request under the same key. It is safe for concurrent use.
type customers struct {
	seed  uint64
	shops []*rig.TestbedShop
	lanes []lane

	mu        sync.Mutex // guards the rest, and which items are sold
	purchases []*purchase
	again     []*purchase // to repeat, in the order of due
	down      []time.Time // by shop: it refused a connection; until then, other shops are tried
	faults    []*placed
	answers   []answer // since forget

	turns         int // requests
	busy, repeats int
	failures      []string // unexpected answers
}

// answer is what one request was answered.
type answer struct {
	shop, lane int
	at         time.Time
	outcome    load.Outcome
	status     int
}

func newCustomers(seed uint64, shops []*rig.TestbedShop, shelves []*shelf) *customers {
	c := &customers{seed: seed, shops: shops, down: make([]time.Time, len(shops))}
	for _, s := range shelves {
		for _, by := range s.strategies {
			c.lanes = append(c.lanes, lane{s, by.Name})
		}
	}
	return c
}

const (
	refusedPause = 50 * time.Millisecond // before a shop that refused a connection is tried again
	firstPause   = 200 * time.Millisecond
	longestPause = 2 * time.Second // between two tries of a customer
)

// next returns the order to send next: a new one, or every other time a repeat that is due. With
// repeats alone the shops could not show that they sell again.
func (c *customers) next() (load.Order, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turns++
	if c.turns%2 == 0 {
		if order, ok := c.repeat(); ok {
			return order, true
		}
	}
	return c.send(c.newPurchase()), true
}

func (c *customers) nextRepeat() (load.Order, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.repeat()
}

func (c *customers) repeat() (load.Order, bool) {
	if len(c.again) == 0 || time.Now().Before(c.again[0].due) {
		return load.Order{}, false
	}
	p := c.again[0]
	c.again = c.again[1:]
	p.shop = c.upFrom(p.shop + 1) // another shop must give the same answer
	c.repeats++
	return c.send(p), true
}

func (c *customers) send(p *purchase) load.Order {
	p.tries++
	order := load.Order{
		Shop: c.shops[p.shop].URL, ItemID: p.item.ItemID, Quantity: 1, RequestID: p.key, IdempotencyKey: p.key,
		Strategy: c.lanes[p.lane].by, Run: p.item.ID, Tag: p,
	}
	if p.fault != nil && p.tries == 1 {
		order.Fault = p.fault.Fault
	}
	return order
}

func (c *customers) newPurchase() *purchase {
	n := len(c.purchases)
	p := &purchase{key: fmt.Sprintf("soak-%010d-%010d", c.seed, n), lane: n % len(c.lanes)}
	p.item = c.lanes[p.lane].shelf.item()
	p.shop = c.upFrom(n / len(c.lanes)) // every shop sells by every strategy
	if len(c.faults) > 0 {
		p.fault, c.faults = c.faults[0], c.faults[1:]
		p.shop = p.fault.shop
	}
	c.purchases = append(c.purchases, p)
	return p
}

// upFrom is the index of the n-th shop, or of the first after it that is not down.
func (c *customers) upFrom(n int) int {
	for i := range c.shops {
		if at := (n + i) % len(c.shops); time.Now().After(c.down[at]) {
			return at
		}
	}
	return n % len(c.shops)
}

// answered notes what became of one request.
func (c *customers) answered(a load.Answer) {
	p := a.Order.Tag.(*purchase)
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.fault != nil && p.tries == 1 {
		close(p.fault.ended)
	}
	p.story = append(p.story, fmt.Sprintf("%s by shop %d", a.Outcome, p.shop+1))
	c.conclude(p, a)
	c.answers = append(c.answers, answer{p.shop, p.lane, time.Now(), a.Outcome, a.Status})
	if p.open() {
		c.askAgain(p)
	}
}

// conclude decides what the answer means for the purchase.
func (c *customers) conclude(p *purchase, a load.Answer) {
	switch a.Outcome {
	case load.Sold:
		order, err := a.Sale()
		if err != nil {
			c.failures = append(c.failures, fmt.Sprintf("%s: %v", p.key, err))
		}
		p.outcome, p.order, p.publicID, p.replayed = load.Sold, order.ID, order.PublicID, a.Replayed()
	case load.SoldOut:
		c.lanes[p.lane].shelf.soldOut(p.item)
		if !p.doubtful || time.Since(p.doubted) > underWay {
			p.outcome = load.SoldOut
		}
	case load.Refused:
		c.down[p.shop] = time.Now().Add(refusedPause)
	case load.Unknown:
		p.doubtful, p.doubted = true, time.Now()
	case load.Busy, load.Conflict, load.Lost, load.Fenced:
		c.busy++
		if !p.doubtful {
			p.outcome = a.Outcome // the shop says that nothing was sold: the audit compares that with the orders
		}
	default:
		p.doubtful, p.doubted = true, time.Now()
		c.failures = append(c.failures, fmt.Sprintf("%s: an unexpected answer: %d %s", p.key, a.Status, a.Body))
	}
}

func (c *customers) askAgain(p *purchase) {
	p.due = time.Now().Add(min(firstPause<<min(p.tries-1, 8), longestPause))
	at, _ := slices.BinarySearchFunc(c.again, p, func(a, b *purchase) int { return a.due.Compare(b.due) })
	c.again = slices.Insert(c.again, at, p)
}

// place injects a fault into the next purchase, at the shop. The channel closes when that request
// is over.
func (c *customers) place(shop int, fault labmode.Fault) <-chan struct{} {
	f := &placed{Fault: fault, shop: shop, ended: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, f)
	return f.ended
}

func (c *customers) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers = nil
}

// firstSales returns how long it took from the moment until every shop had sold by every strategy.
// While one has not, it names those that are missing, and what they answered instead.
func (c *customers) firstSales(after time.Time) (took time.Duration, missing []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for shop := range c.shops {
		for n, lane := range c.lanes {
			sold, instead := time.Time{}, map[string]int{}
			for _, t := range c.answers {
				if t.shop != shop || t.lane != n || t.at.Before(after) {
					continue
				}
				if t.outcome == load.Sold {
					sold = t.at
					break
				}
				instead[fmt.Sprint(t.outcome, " ", t.status)]++
			}
			if sold.IsZero() {
				var answers []string
				for answer, n := range instead {
					answers = append(answers, fmt.Sprintf("%d × %s", n, answer))
				}
				slices.Sort(answers)
				missing = append(missing, fmt.Sprintf("shop %d by %s (%s)", shop+1, lane.by, strings.Join(answers, ", ")))
			}
			took = max(took, sold.Sub(after))
		}
	}
	if len(missing) > 0 {
		took = time.Since(after)
	}
	return took, missing
}

// settle repeats requests until every customer has an answer.
func (c *customers) settle(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	repeats := load.Load{Shape: load.Steady(100), Workers: 100, Timeout: patience}
	for c.waiting() > 0 {
		if err := repeats.Run(ctx, c.nextRepeat, c.answered); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d customers repeated their requests for %s more and still do not know whether they bought", c.waiting(), within)
		case <-time.After(firstPause / 2):
		}
	}
	return nil
}

func (c *customers) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.again)
}
