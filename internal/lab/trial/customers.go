package trial

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"stocklock/internal/lab/load"
	"stocklock/internal/shop/labmode"
)

// customers send the requests, each to the shop whose turn it is. One of them is the first of the
// play: while it is on its way to its point, no other request is under way. It is safe for
// concurrent use.
type customers struct {
	mu      sync.Mutex  // guards the rest
	changed *sync.Cond  // on mu
	hits    []*Customer // in the order in which they were made
	ids     map[string]*Customer
	wishes  wishes      // what they buy
	prefix  string      // of the ids
	shops   []shopState // by index
	turn    int         // the index of the next shop

	firstAt  int       // the number of the first request that can be the first of the play; negative for none
	pending  bool      // the first of the play is under way to its point
	inTurn   bool      // while it is, one request at a time is still sent
	missed   *Customer // that one, if it was answered as sold, or not at all; nil before
	apart    bool      // the first of the play keeps others away from its shop until its answer
	notFirst int       // the index of a shop to which the first does not go; negative for none
	lateNext bool      // the next request is that of a [lastUnit]
	lateOne  *Customer // it, nil before that
}

// shopState is what keeps requests away from a shop.
type shopState struct {
	alone    bool      // it has the first of the play for itself
	inFlight int       // requests that were sent and not answered
	down     time.Time // a connection was refused: until then, other shops are tried
}

// Customer is who wants something once, by one request.
type Customer struct {
	number    int // from 0
	id        string
	shop      int  // index
	first     bool // of the play
	passed    bool // it was rejected as busy, and asked again, since nothing had kept it out
	late      bool // of a [lastUnit]: it counts neither as under way nor in what is measured
	fault     labmode.Fault
	nested    bool
	lease     time.Duration // of its lock; 0 for the shop's usual one
	wait      time.Duration // for its lock; 0 for the shop's usual one
	wish      wish
	scheduled time.Time // when it should have been sent
	alone     bool      // nothing else was under way

	load.Answer           // zero until done
	wanted      Wish      // of a few
	holds       int       // that were asked for and not ended: the most there is for one that is held each time
	letGo       time.Time // when its hold was ended last; zero for never. Of a crowd, only the first sale's is noted
	server      int       // of a topology, that the shop was led to

	order    string        // the id in an answer of sold, empty where it has none
	reserved string        // the id of the reservation, empty where it has none
	replayed bool          // the order was made for an earlier request
	done     chan struct{} // closed when the request has been answered, or will not be
}

func (h *Customer) answeredAt() time.Time { return h.Sent.Add(h.Latency) }

// take notes the answer, and drops what nobody reads.
func (h *Customer) take(answer load.Answer) {
	h.Answer = answer
	switch {
	case answer.Order.Act != "":
		reserved := answer.Reserved()
		h.order, h.reserved = reserved.OrderID, reserved.ID
	case h.Outcome == load.Sold:
		order, _ := answer.Sale()
		h.order, h.replayed = order.PublicID, answer.Replayed()
	}
	if h.Outcome != load.Failed {
		h.Body, h.Header = nil, nil
	}
}

func newCustomers(shops int, prefix string, wishes wishes) *customers {
	c := &customers{wishes: wishes, shops: make([]shopState, shops), ids: map[string]*Customer{}, prefix: prefix, firstAt: -1, notFirst: -1}
	c.changed = sync.NewCond(&c.mu)
	return c
}

// downFor is how long a shop gets no requests that refused a connection.
const downFor = 50 * time.Millisecond

// next makes the next request. It chooses the next shop that is neither down nor kept for the first
// of the play. It waits while that one is on its way, and returns nil if ctx ends meanwhile.
func (c *customers) next(ctx context.Context) *Customer {
	defer context.AfterFunc(ctx, c.wake)()
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.pending && !(c.inTurn && c.underWay() == 0) && ctx.Err() == nil {
		c.changed.Wait()
	}
	if ctx.Err() != nil {
		return nil
	}
	h := c.add()
	if h.late = c.lateNext; h.late {
		c.lateNext, c.lateOne = false, h
	}
	h.first = c.firstAt >= 0 && h.number >= c.firstAt && !h.late
	h.wish = c.wishes.next(h.number, h.first || h.late)
	now := time.Now()
	h.shop = c.turn
	for i := range c.shops {
		at := (c.turn + i) % len(c.shops)
		if s := c.shops[at]; !s.alone && now.After(s.down) && !(h.first && at == c.notFirst) {
			h.shop = at
			break
		}
	}
	if h.late { // the first of the play is elsewhere
		h.shop = max(c.notFirst, 0)
	}
	c.turn = (h.shop + 1) % len(c.shops)
	if h.first {
		c.pending = true
		c.shops[h.shop].alone = c.apart
		for c.underWay() > 0 && ctx.Err() == nil {
			c.changed.Wait()
		}
	}
	if !h.late {
		c.shops[h.shop].inFlight++
	}
	return h
}

// add makes a request. It needs the lock, or to be alone.
func (c *customers) add() *Customer {
	h := &Customer{number: len(c.hits), done: make(chan struct{})}
	h.id = fmt.Sprintf("%s-%d", c.prefix, h.number)
	c.hits = append(c.hits, h)
	c.ids[h.id] = h
	return h
}

// underWay needs the lock.
func (c *customers) underWay() int {
	sum := 0
	for _, s := range c.shops {
		sum += s.inFlight
	}
	return sum
}

func (c *customers) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed.Broadcast()
}

// goOn lets other requests be sent beside the first of the play, and makes no other one the first. Apart says that no
// purchase is sent beside itself yet, as before the first of the play: the units that a repeat reserves have a lease that
// is not the first's, and two sales that are to meet buy nothing twice if they are one purchase.
func (c *customers) goOn(apart bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.firstAt, c.pending, c.wishes.apart = -1, false, apart
	c.changed.Broadcast()
}

// takeTurns lets requests be sent one at a time, until rest.
func (c *customers) takeTurns() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inTurn = true
	c.changed.Broadcast()
}

// rest ends that, and waits for the answer to the last one.
func (c *customers) rest(ctx context.Context) {
	defer context.AfterFunc(ctx, c.wake)()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inTurn = false
	for c.underWay() > 0 && ctx.Err() == nil {
		c.changed.Wait()
	}
}

func (c *customers) answered(h *Customer, answer load.Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.take(answer)
	c.wishes.answered(h)
	s := &c.shops[h.shop]
	if h.Outcome == load.Refused || h.fault.Action == labmode.Kill {
		s.down = time.Now().Add(downFor)
	}
	if h.first {
		s.alone = false
	}
	switch {
	case !h.first:
	case h.Outcome == load.Unknown || h.Outcome == load.Sold:
		c.missed = h // unless its point is still to be read, or to come
	default:
		c.pending = false // it has not reached its point: another one is to be the first
	}
	if !h.late {
		s.inFlight--
	}
	c.changed.Broadcast()
}

// firstOfPlay reports whether the first of the play is under way to its point, and returns it if it was answered then.
func (c *customers) firstOfPlay() (pending bool, answered *Customer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.pending {
		return false, nil
	}
	return true, c.missed
}

// sendLate has the next request be that of a [lastUnit].
func (c *customers) sendLate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lateNext = true
}

// late returns the request of a [lastUnit], nil before it was made.
func (c *customers) late() *Customer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lateOne
}

// byID returns nil for a request that was not made.
func (c *customers) byID(id string) *Customer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ids[id]
}

// shopOf returns the index of the shop of a request, -1 for a request that was not made.
func (c *customers) shopOf(id string) int {
	if h := c.byID(id); h != nil {
		return h.shop
	}
	return -1
}

// all reports whether is reports true of each request so far.
func (c *customers) all(is func(*Customer) bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !slices.ContainsFunc(c.hits, func(h *Customer) bool { return !is(h) })
}

// unknown reports whether a request may have sold without an answer that says so. It is for the
// time after the attack, as is the rest of this file.
func (c *customers) unknown() bool {
	return slices.ContainsFunc(c.hits, func(h *Customer) bool {
		return (h.Outcome == load.Unknown || h.Outcome == "") && h.fault.Action != labmode.Kill
	})
}

func (c *customers) records() []load.Record {
	records := make([]load.Record, len(c.hits))
	for i, h := range c.hits {
		records[i] = load.Record{Answer: h.Answer, Scheduled: h.scheduled}
	}
	return records
}
