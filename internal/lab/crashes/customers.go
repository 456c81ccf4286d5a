package crashes

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
)

// customers buy one unit each. Without a clear answer they repeat the request under the same
// idempotency key at another shop. It is safe for concurrent use.
type customers struct {
	item  audit.Run
	shops []*rig.TestbedShop

	mu       sync.Mutex  // guards the rest
	bought   []uint64    // by customer: the id in the 201, anyID for one without an id, 0 without a 201
	again    []*purchase // to repeat, in the order of due
	waiting  int         // customers without a clear answer
	down     []time.Time // by shop: it refused a connection; until then, others are tried
	finished bool        // a customer found the item sold out

	answers, resolved, unknown int
	failures                   []string // unexpected answers
}

// purchase is a customer without a clear answer.
type purchase struct {
	customer int
	shop     int // of the last try
	doubtful bool
	due      time.Time // of the next try
}

// anyID stands for the id of an order that was not made yet when it was answered.
const anyID = math.MaxUint64

const (
	keyPrefix = "crashes-"
	pause     = 50 * time.Millisecond // before a repeat, and before a shop that refused is tried again
)

func key(customer int) string { return fmt.Sprintf("%s%020d", keyPrefix, customer) }

// customerOf returns whose key it is.
func customerOf(key string) (customer int, err error) {
	return strconv.Atoi(strings.TrimPrefix(key, keyPrefix))
}

func newCustomers(item audit.Run, shops []*rig.TestbedShop) *customers {
	return &customers{item: item, shops: shops, down: make([]time.Time, len(shops))}
}

// next returns a repeat that is due, or the order of a new customer. It is false when the item is
// sold out.
func (c *customers) next() (load.Order, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.due(); p != nil {
		return c.order(p), true
	}
	if c.finished {
		return load.Order{}, false
	}
	p := &purchase{customer: len(c.bought), shop: len(c.bought)}
	c.bought = append(c.bought, 0)
	c.waiting++
	return c.order(p), true
}

func (c *customers) nextRepeat() (load.Order, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.due()
	if p == nil {
		return load.Order{}, false
	}
	return c.order(p), true
}

func (c *customers) due() *purchase {
	if len(c.again) == 0 || time.Now().Before(c.again[0].due) {
		return nil
	}
	p := c.again[0]
	c.again = c.again[1:]
	return p
}

func (c *customers) order(p *purchase) load.Order {
	for range c.shops {
		p.shop = (p.shop + 1) % len(c.shops)
		if time.Now().After(c.down[p.shop]) {
			break
		}
	}
	name := key(p.customer)
	return load.Order{
		Shop: c.shops[p.shop].URL, ItemID: c.item.ItemID, Quantity: 1, RequestID: name, IdempotencyKey: name,
		Strategy: c.item.Strategy, Run: c.item.ID, Tag: p,
	}
}

func (c *customers) answered(a load.Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := a.Order.Tag.(*purchase)
	switch a.Outcome {
	case load.Sold:
		order, err := a.Sale()
		if err != nil {
			c.failures = append(c.failures, err.Error())
		}
		if c.bought[p.customer] = order.ID; order.ID == 0 {
			c.bought[p.customer] = anyID
		}
		if p.doubtful {
			c.resolved++
		} else {
			c.answers++
		}
		c.waiting--
		return
	case load.SoldOut:
		c.finished = true
		c.waiting--
		return
	case load.Refused:
		c.down[p.shop] = time.Now().Add(pause)
	case load.Unknown:
		c.unknown++
		p.doubtful = true
	case load.Failed:
		c.failures = append(c.failures, fmt.Sprintf("%s: %d %s", key(p.customer), a.Status, a.Body))
	}
	p.due = time.Now().Add(pause)
	c.again = append(c.again, p)
}

// settle repeats requests until every customer has a clear answer.
func (c *customers) settle(ctx context.Context, workers int) error {
	ctx, cancel := context.WithTimeout(ctx, settling)
	defer cancel()
	repeats := load.Load{Workers: workers, Timeout: patience}
	for c.open() > 0 {
		if err := repeats.Run(ctx, c.nextRepeat, c.answered); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d customers have no clear answer after %s: %w", c.open(), settling, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
	return nil
}

func (c *customers) open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting
}

func (c *customers) sold() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answers + c.resolved
}
