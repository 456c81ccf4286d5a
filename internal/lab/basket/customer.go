package basket

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"sync"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/load"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
)

// customer posts one basket, perhaps several times.
type customer struct {
	name     string
	shop     int
	lines    []int  // the indexes of the items, in the order in which they are posted
	by       string // the strategy, empty for the way of the cell
	beside   bool   // it is in the way of others: that it is refused is not counted
	hesitant bool   // it waits no longer than is usual: the play goes on when it is refused

	request string
	holds   int // that were asked for and not ended: the most there is for one that is held each time

	mu     sync.Mutex
	answer *load.Answer // to the last request; nil while it is under way
}

// answered reports whether the last request has an answer.
func (c *customer) answered() bool { return c.outcome() != "" }

func (c *customer) outcome() load.Outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answer == nil {
		return ""
	}
	return c.answer.Outcome
}

// holdAtMost bounds a hold that nobody ends.
const holdAtMost = 20 * time.Second

// order sends the basket of a new customer. With an action, that is done at a point of the sale.
func (c *cell) order(ctx context.Context, customer *customer, at sale.Point, action labmode.Action) *customer {
	c.customers = append(c.customers, customer)
	c.send(ctx, customer, at, action)
	return customer
}

// send sends the basket of a customer once more.
func (c *cell) send(ctx context.Context, to *customer, at sale.Point, action labmode.Action) {
	var fault labmode.Fault
	if action != "" {
		fault = labmode.Fault{Point: at, Action: action}
		switch action {
		case labmode.Hold:
			fault.For, to.holds = holdAtMost, 1
		case labmode.HoldEach:
			fault.For, to.holds = holdAtMost, math.MaxInt
		}
	}
	to.request = fmt.Sprintf("%s-%s-%d", c.id, to.name, time.Now().UnixNano())
	to.request = to.request[max(0, len(to.request)-audit.MaxID):]
	items := make([]uint64, len(to.lines))
	for i, line := range to.lines {
		items[i] = c.items[line].ItemID
	}
	order := load.Order{
		Shop: c.bench.Shops[to.shop].URL, ItemID: items[0], More: items[1:], Quantity: 1, AsPosted: true, RequestID: to.request,
		Strategy: cmp.Or(to.by, c.of.Name), Run: c.id, Fault: fault,
	}
	if to.name == "A" {
		order.Lease = c.scenario.lease
	}
	if !to.hesitant {
		order.Wait = patience // no stall of the machine has it refused
	}
	to.mu.Lock()
	to.answer = nil
	to.mu.Unlock()
	go func() {
		answer := load.Send(ctx, order)
		to.mu.Lock()
		defer to.mu.Unlock()
		to.answer = &answer
	}()
}

// release lets a customer's sale go on that is held. Of any other it does nothing.
func (c *cell) release(ctx context.Context, of *customer) {
	if of.holds > 0 && load.Release(ctx, c.bench.Shops[of.shop].URL, of.request) == nil { // it may not be held yet
		of.holds--
	}
}

// passed reports whether the sale of a customer has passed a point.
func (c *cell) passed(of *customer, p sale.Point) bool { return c.passes(of, p) > 0 }

// passes is how often the sale of a customer has passed one of these points.
func (c *cell) passes(of *customer, points ...sale.Point) int {
	return c.feed.Count(func(e labmode.Event) bool { return e.Request == of.request && slices.Contains(points, e.Point) })
}

// reached reports whether the sale of a customer has reached the point of its fault.
func (c *cell) reached(of *customer) bool { return c.reaches(of) > 0 }

// reaches is how often it has.
func (c *cell) reaches(of *customer) int {
	return c.feed.Count(func(e labmode.Event) bool { return e.Request == of.request && e.Facts["fault"] != nil })
}

// keptOut reports whether a customer without an answer waits for others: by the point waiting, or in
// MySQL. Nobody else of the cell may wait there.
func (c *cell) keptOut(ctx context.Context, of *customer) bool {
	return c.passed(of, sale.Waiting) || !of.answered() && c.waitsInMySQL(ctx)
}

// waitsInMySQL reports whether a statement on one of the cell's items waits for another's transaction.
func (c *cell) waitsInMySQL(ctx context.Context) bool {
	waiting, err := c.bench.Waits.Waiting(ctx)
	return err == nil && slices.ContainsFunc(waiting, c.names)
}

// names reports whether a statement or a key has the id of an item of the cell in it.
func (c *cell) names(text string) bool {
	return slices.ContainsFunc(c.items, func(item audit.Run) bool {
		return regexp.MustCompile(fmt.Sprintf(`\b%d\b`, item.ItemID)).MatchString(text)
	})
}

// await waits until done reports true, or ctx ends.
func (c *cell) await(ctx context.Context, done func() bool) bool {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}

const lookEvery = 2 * time.Millisecond
