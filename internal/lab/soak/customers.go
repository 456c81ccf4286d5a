package soak

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/trial"
	"stocklock/internal/stock"
)

// purchase is one customer's wish for one unit, under one idempotency key.
type purchase struct {
	key      string
	shelf    int
	item     audit.Run
	tries    int
	doubtful bool // some try may have sold: only a 201 or sold out can end it
	outcome  trial.Outcome
	order    uint64   // the one in the 201
	replayed bool     // the 201 was given to a repeat
	story    []string // what each try was told

	due   time.Time // of the next try
	shop  int       // of the last try
	fault *placed
}

// open says whether the customer still wants an answer.
func (p *purchase) open() bool { return p.outcome == "" }

// placed is a fault that the next purchase carries into a sale.
type placed struct {
	shop  int
	spec  string        // see package fault
	ended chan struct{} // closed when the request is over
}

// customers buy, each one unit. One that got no answer, or one that leaves the outcome
// open, asks again under the same key until it knows.
type customers struct {
	seed  uint64
	shops []*rig.TestbedShop

	mu        sync.Mutex // guards the rest
	shelves   []*shelf
	purchases []*purchase
	again     []*purchase // in the order in which they are due
	down      []time.Time // for each shop: nobody listened; until then, try others
	faults    []*placed
	told      []told // since forget

	turns         int // requests
	busy, repeats int
	failures      []string // answers that should not be
}

// told is what one request was answered with.
type told struct {
	shop, shelf int
	at          time.Time
	outcome     trial.Outcome
	status      int
}

func newCustomers(seed uint64, shops []*rig.TestbedShop) *customers {
	return &customers{seed: seed, shops: shops, down: make([]time.Time, len(shops))}
}

const (
	refusedPause = 50 * time.Millisecond // before a shop that refused a connection is tried again
	firstPause   = 200 * time.Millisecond
	longestPause = 2 * time.Second // between two tries of a customer in doubt
)

// next is the order that is sent next: a new one, or every other time a repeat that is due. A crowd that only
// repeats would keep the shops from showing that they sell again.
func (c *customers) next() (trial.Order, bool) {
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

func (c *customers) nextRepeat() (trial.Order, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.repeat()
}

func (c *customers) repeat() (trial.Order, bool) {
	if len(c.again) == 0 || time.Now().Before(c.again[0].due) {
		return trial.Order{}, false
	}
	p := c.again[0]
	c.again = c.again[1:]
	p.shop = c.upFrom(p.shop + 1) // another shop must know too
	c.repeats++
	return c.send(p), true
}

func (c *customers) send(p *purchase) trial.Order {
	p.tries++
	header := http.Header{
		"Idempotency-Key": {p.key}, "X-Request-Id": {p.key},
		"X-Lab-Strategy": {p.item.Strategy}, "X-Lab-Run": {p.item.ID},
	}
	if p.fault != nil && p.tries == 1 {
		header.Set("X-Lab-Fault", p.fault.spec)
	}
	return trial.Order{Shop: c.shops[p.shop].URL, ItemID: p.item.ItemID, Quantity: 1, Header: header, Tag: p}
}

func (c *customers) newPurchase() *purchase {
	n := len(c.purchases)
	p := &purchase{key: fmt.Sprintf("soak-%d-%d", c.seed, n), shelf: n % len(c.shelves)}
	p.item = c.shelves[p.shelf].item()
	p.shop = c.upFrom(n / len(c.shelves)) // every shop sells by every strategy
	if len(c.faults) > 0 {
		p.fault, c.faults = c.faults[0], c.faults[1:]
		p.shop = p.fault.shop
	}
	c.purchases = append(c.purchases, p)
	return p
}

// upFrom is the n-th shop, or the first after it that somebody listens at.
func (c *customers) upFrom(n int) int {
	for i := range c.shops {
		if at := (n + i) % len(c.shops); time.Now().After(c.down[at]) {
			return at
		}
	}
	return n % len(c.shops)
}

// answered takes note of what became of one request.
func (c *customers) answered(a trial.Answer) {
	p := a.Order.Tag.(*purchase)
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.fault != nil && p.tries == 1 {
		close(p.fault.ended)
	}
	p.story = append(p.story, fmt.Sprintf("%s by shop %d", a.Outcome, p.shop+1))
	c.conclude(p, a.Outcome, a.Status, a.Header, a.Body)
	c.told = append(c.told, told{p.shop, p.shelf, time.Now(), a.Outcome, a.Status})
	if p.open() {
		c.askAgain(p)
	}
}

// conclude takes what the answer says about the purchase.
func (c *customers) conclude(p *purchase, outcome trial.Outcome, status int, header http.Header, body []byte) {
	switch outcome {
	case trial.Sold:
		var order stock.Order
		if err := json.Unmarshal(body, &order); err != nil {
			c.failures = append(c.failures, fmt.Sprintf("%s: a 201 that cannot be read: %v: %s", p.key, err, body))
		}
		p.outcome, p.order, p.replayed = trial.Sold, order.ID, header.Get("Idempotency-Replayed") == "true"
	case trial.SoldOut:
		p.outcome = trial.SoldOut
		c.shelves[p.shelf].soldOut(p.item)
	case trial.Refused:
		c.down[p.shop] = time.Now().Add(refusedPause)
	case trial.Unknown:
		p.doubtful = true
	case trial.Busy, trial.Conflict, trial.Lost, trial.Fenced:
		c.busy++
		if !p.doubtful {
			p.outcome = outcome // the shop says that nothing was sold: the audit will hold it to that
		}
	default:
		p.doubtful = true
		c.failures = append(c.failures, fmt.Sprintf("%s: an answer that should not be: %d %s", p.key, status, body))
	}
}

func (c *customers) askAgain(p *purchase) {
	p.due = time.Now().Add(min(firstPause<<min(p.tries-1, 8), longestPause))
	at, _ := slices.BinarySearchFunc(c.again, p, func(a, b *purchase) int { return a.due.Compare(b.due) })
	c.again = slices.Insert(c.again, at, p)
}

// place lets the next purchase carry a fault to the shop. The channel closes when that request is over.
func (c *customers) place(shop int, spec string) <-chan struct{} {
	f := &placed{shop: shop, spec: spec, ended: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, f)
	return f.ended
}

func (c *customers) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = nil
}

// firstSales says how long after the moment the last shop made its first sale by the last strategy, or
// which have made none yet, and what they answered instead.
func (c *customers) firstSales(after time.Time) (took time.Duration, missing []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for shop := range c.shops {
		for shelf, by := range c.shelves {
			sold, instead := time.Time{}, map[string]int{}
			for _, t := range c.told {
				if t.shop != shop || t.shelf != shelf || t.at.Before(after) {
					continue
				}
				if t.outcome == trial.Sold {
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
				missing = append(missing, fmt.Sprintf("shop %d by %s (%s)", shop+1, by.strategy.Name, strings.Join(answers, ", ")))
			}
			took = max(took, sold.Sub(after))
		}
	}
	if len(missing) > 0 {
		took = time.Since(after)
	}
	return took, missing
}

// settle asks for everybody who still wants an answer, until all have one.
func (c *customers) settle(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	load := trial.Load{Rate: 100, Workers: 100, Timeout: patience}
	for c.waiting() > 0 {
		load.Run(ctx, c.nextRepeat, c.answered)
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d customers asked for %s more and still do not know whether they bought", c.waiting(), within)
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
