package soak

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/seen"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/stock"
)

// purchase is one customer's attempt to buy, under one idempotency key.
type purchase struct {
	customer int
	basket   []audit.Run // the items, in the order of their ids
	tries    int
	doubted  time.Time // when the last try was given up that may have sold, or may still sell; zero for none
	story    []string  // what each try was answered
	closed   bool      // the customer has a clear answer

	due   time.Time // of the next try
	shop  int       // of the last try
	fault *placed
}

// offer is one strategy and what it sells.
type offer struct {
	items *items
	by    string // the strategy's name
}

// placed is a fault that is injected into the next purchase.
type placed struct {
	labmode.Fault
	shop  int
	ended chan load.Answer // to the request, when it is over
}

// customers buy one order each. Without an answer, or with one that leaves the outcome open, they
// repeat the request under the same key. There may be millions: of a customer who had a clear answer
// at once, only the order is kept. It is safe for concurrent use.
type customers struct {
	prefix   string // of their keys
	shops    []*rig.TestbedShop
	offers   []*offer      // chosen in turn
	endless  bool          // also when the items are sold out
	units    int           // that each buys of an item
	lines    int           // items that each buys, but for the baskets of a soak of faults
	asPosted bool          // the shops are told the order of the lines
	final    time.Duration // how long after a doubtful try a repeat may find the item sold out although that try can still sell

	mu       sync.Mutex        // guards the rest, and which items are sold
	bought   []uint64          // by customer: what idOf says of the 201, 0 without a 201
	repeated map[int]*purchase // by customer: those without a clear answer at first
	recent   []stock.Order     // that may be cancelled
	again    []*purchase       // to repeat, in the order of due
	down     []time.Time       // by shop: it refused a connection; until then, other shops are tried
	faults   []*placed
	answers  []answer // since forget, of endless customers

	settling            bool      // no new customers come
	atRest              time.Time // when no request was under way any more
	turns               int       // requests
	sold, busy, repeats int
	limited             int
	failures            []string // unexpected answers
}

// anyID stands for the id of an order where an answer has none, since it is not made yet, or one that cannot be read.
const anyID = math.MaxUint64

// idOf returns the last 64 bits of an order's public id, of which 62 are random.
func idOf(publicID string) uint64 {
	id, err := uuid.Parse(publicID)
	if err != nil {
		return anyID
	}
	return binary.BigEndian.Uint64(id[8:])
}

// mostRecent bounds customers.recent.
const mostRecent = 4096

// answer is what one request was answered.
type answer struct {
	shop    int
	offer   *offer
	at      time.Time
	outcome load.Outcome
	status  int
}

func newCustomers(seed uint64, shops []*rig.TestbedShop, all []*items) *customers {
	c := &customers{units: 1, lines: 1, prefix: fmt.Sprintf("soak-%010d-", seed), shops: shops, down: make([]time.Time, len(shops)), repeated: map[int]*purchase{}}
	for _, items := range all {
		for _, by := range items.strategies {
			c.offers = append(c.offers, &offer{items, by.Name})
		}
	}
	return c
}

const (
	refusedPause = 50 * time.Millisecond // before a shop that refused a connection is tried again
	firstPause   = 200 * time.Millisecond
	longestPause = 2 * time.Second // between two tries of a customer
)

// key returns the idempotency key of a customer, and customerOf whose key it is.
func (c *customers) key(customer int) string { return fmt.Sprintf("%s%010d", c.prefix, customer) }

func (c *customers) customerOf(key string) (customer int, ok bool) {
	number, ok := strings.CutPrefix(key, c.prefix)
	customer, err := strconv.Atoi(number)
	return customer, ok && err == nil && customer < len(c.bought)
}

// size is how many items a customer orders. The lines differ where there are faults.
func (c *customers) size(customer int) int {
	if of := c.offer(customer).items; of.ahead > 0 {
		return 1 + customer/len(c.offers)%(of.ahead+1)
	}
	return c.lines
}

func (c *customers) offer(customer int) *offer { return c.offers[customer%len(c.offers)] }

// next returns the order to send next: a new one, or every other time a repeat that is due. With
// repeats alone the shops could not show that they sell again. It is false when the items are sold
// out, unless the customers are endless.
func (c *customers) next() (load.Order, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turns++
	switch due := len(c.again) > 0 && !time.Now().Before(c.again[0].due); {
	case due && (c.settling || c.turns%2 == 0):
		p := c.again[0]
		c.again = c.again[1:]
		p.shop = c.upFrom(p.shop + 1) // another shop must give the same answer
		c.repeats++
		return c.send(p), true
	case c.settling, c.offer(len(c.bought)).items.soldOut && !c.endless:
		return load.Order{}, false
	}
	return c.send(c.newPurchase()), true
}

func (c *customers) send(p *purchase) load.Order {
	p.tries++
	key := c.key(p.customer)
	var items []uint64
	for _, item := range p.basket {
		items = append(items, item.ItemID)
	}
	if p.customer%2 == 0 { // the shop puts them in order
		slices.Reverse(items)
	}
	order := load.Order{
		Shop: c.shops[p.shop].URL, ItemID: items[0], More: items[1:], Quantity: c.units, AsPosted: c.asPosted, RequestID: key, IdempotencyKey: key,
		Strategy: c.offer(p.customer).by, Run: p.basket[0].ID, Tag: p,
	}
	if c.endless {
		order.Subject = fmt.Sprint("customer-", p.customer/c.perSubject())
	}
	if p.fault != nil && p.tries == 1 {
		order.Fault = p.fault.Fault
	}
	return order
}

// perSubject is how many orders in a row are one subject's: so many that some are refused by the limit, and a number
// that does not divide those by which each shop has sold once by each strategy. Else the same pairs would always be refused.
func (c *customers) perSubject() int {
	n := limit + 2
	for len(c.shops)*len(c.offers)%n == 0 {
		n++
	}
	return n
}

func (c *customers) newPurchase() *purchase {
	n := len(c.bought)
	p := &purchase{customer: n, basket: c.offer(n).items.basket(n, c.size(n))}
	p.shop = c.upFrom(n / len(c.offers)) // every shop sells by every strategy
	if len(c.faults) > 0 {
		p.fault, c.faults = c.faults[0], c.faults[1:]
		p.shop = p.fault.shop
	}
	c.bought = append(c.bought, 0)
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

func (c *customers) answered(a load.Answer) {
	p := a.Order.Tag.(*purchase)
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.fault != nil && p.tries == 1 {
		p.fault.ended <- a
	}
	p.story = append(p.story, fmt.Sprintf("%s by shop %d", a.Outcome, p.shop+1))
	offer := c.offer(p.customer)
	c.conclude(p, offer.items, a)
	if c.endless && !a.Replayed() { // whose soak looks for the first sales after a fault; a replay takes no lock, and nothing off the stock
		c.answers = append(c.answers, answer{p.shop, offer, time.Now(), a.Outcome, a.Status})
	}
	if !p.closed {
		c.askAgain(p)
	}
}

// conclude decides what the answer means for the purchase.
func (c *customers) conclude(p *purchase, items *items, a load.Answer) {
	switch a.Outcome {
	case load.Sold:
		order, err := a.Sale()
		if another := func(item audit.Run) bool { row, _ := order.Row(item.ItemID); return row.Quantity != int64(c.units) }; err == nil &&
			order.ItemID != 0 && slices.ContainsFunc(p.basket, another) {
			err = fmt.Errorf("an answer with 201 that is not what was ordered: %s", a.Body)
		}
		if err != nil {
			c.failures = append(c.failures, fmt.Sprintf("%s: %v", c.key(p.customer), err))
		}
		p.closed, c.bought[p.customer] = true, idOf(order.PublicID)
		c.sold++
		if a.Replayed() {
			items.replayed++
		}
		if items.takeChanges() && items.cancellable(order) {
			c.recent = append(c.recent[max(0, len(c.recent)+1-mostRecent):], order)
		}
	case load.SoldOut, load.Limited:
		if a.Outcome == load.SoldOut {
			items.next(p.basket[0])
		} else {
			c.limited++
		}
		p.closed = time.Since(p.doubted) > c.final || p.doubted.Before(c.atRest)
	case load.Refused:
		c.down[p.shop] = time.Now().Add(refusedPause)
	case load.Unknown:
		p.doubted = time.Now()
	case load.Busy, load.Conflict, load.Lost, load.Fenced:
		c.busy++
		p.closed = p.doubted.IsZero() // the shop says that nothing was sold: the audit compares that with the orders
	default:
		p.doubted = time.Now()
		c.failures = append(c.failures, fmt.Sprintf("%s: an unexpected answer: %d %s", c.key(p.customer), a.Status, a.Body))
	}
}

func (c *customers) askAgain(p *purchase) {
	c.repeated[p.customer] = p
	p.due = time.Now().Add(min(firstPause<<min(p.tries-1, 8), longestPause))
	at, _ := slices.BinarySearchFunc(c.again, p, func(a, b *purchase) int { return a.due.Compare(b.due) })
	c.again = slices.Insert(c.again, at, p)
}

// place injects a fault into the next purchase, at the shop. The channel has the answer to that request.
func (c *customers) place(shop int, fault labmode.Fault) <-chan load.Answer {
	f := &placed{Fault: fault, shop: shop, ended: make(chan load.Answer, 1)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, f)
	return f.ended
}

// forget drops the answers so far, and returns how many customers have bought.
func (c *customers) forget() (sold int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers = nil
	return c.sold
}

// firstSales returns how long it took from the moment until every shop had sold by every strategy.
// While one has not, it names those that are missing, and what they answered instead.
func (c *customers) firstSales(after time.Time) (took time.Duration, missing []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for shop := range c.shops {
		for _, offer := range c.offers {
			sold, instead := time.Time{}, map[string]int{}
			for _, t := range c.answers {
				if t.shop != shop || t.offer != offer || t.at.Before(after) {
					continue
				}
				if t.outcome == load.Sold {
					sold = t.at
					break
				}
				instead[fmt.Sprint(t.outcome, " ", t.status)]++
			}
			if sold.IsZero() {
				answers := strings.TrimPrefix(fmt.Sprint(instead), "map")
				missing = append(missing, fmt.Sprintf("shop %d by %s %s", shop+1, offer.by, answers))
			}
			took = max(took, sold.Sub(after))
		}
	}
	if len(missing) > 0 {
		took = time.Since(after)
	}
	return took, missing
}

// rest says that the shops work on nothing any more: no earlier try can still sell.
func (c *customers) rest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.atRest = time.Now()
}

// settle repeats requests until every customer has an answer. It returns how many have none in the end.
func (c *customers) settle(ctx context.Context, patience time.Duration) (open int, err error) {
	settle, cancel := context.WithTimeout(ctx, settling)
	defer cancel()
	repeats := load.Load{Workers: 100, Timeout: patience}
	for open = c.waiting(); open > 0 && err == nil && settle.Err() == nil; open = c.waiting() {
		err = repeats.Run(settle, c.next, c.answered)
		_ = seen.Pause(settle, firstPause/2)
	}
	return open, errors.Join(err, context.Cause(ctx))
}

// waiting has no new customers come from now on, and returns how many have no clear answer.
func (c *customers) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settling = true
	return len(c.again)
}
