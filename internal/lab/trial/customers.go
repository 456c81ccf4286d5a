package trial

import (
	"slices"
	"sync"
	"time"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/sale"
)

// customers send the requests, each to the shop whose turn it is. It is safe for concurrent use.
type customers struct {
	mu    sync.Mutex  // guards the rest
	calm  *sync.Cond  // on mu: a shop has answered
	taken bool        // a request that is sent in turn is not answered
	hits  []*hit      // in the order in which they were made
	shops []shopState // by index
	turn  int         // the index of the next shop

	wishes wishes // what they buy

	// Injections of requests that were rejected before they reached their point, to be made again.
	again  []scenario.Injection
	remade int
}

// shopState is what keeps requests away from a shop.
type shopState struct {
	alone    int       // requests that want the shop for themselves
	inFlight int       // requests that were sent and not answered
	down     time.Time // a connection was refused: until then, other shops are tried
}

// hit is one request.
type hit struct {
	number    int // from 0
	id        string
	shop      int // index
	injection scenario.Injection
	wish      wish
	scheduled time.Time // when it should have been sent
	alone     bool      // nothing else was under way

	load.Answer               // zero until done
	order       string        // the id in an answer of sold, empty where it has none
	replayed    bool          // the order was made for an earlier request
	done        chan struct{} // closed when the request has been answered, or will not be
}

func (h *hit) answeredAt() time.Time { return h.Sent.Add(h.Latency) }

// take notes the answer, and drops what nobody reads.
func (h *hit) take(answer load.Answer) {
	h.Answer = answer
	if h.Outcome == load.Sold {
		order, _ := answer.Sale()
		h.order, h.replayed = order.PublicID, answer.Replayed()
	}
	if h.Outcome != load.Failed {
		h.Body, h.Header = nil, nil
	}
}

func newCustomers(shops int, wishes wishes) *customers {
	c := &customers{shops: make([]shopState, shops), wishes: wishes}
	c.calm = sync.NewCond(&c.mu)
	return c
}

const (
	// downFor is how long a shop gets no requests that refused a connection, or that dies after
	// its answer.
	downFor = 50 * time.Millisecond
	// maxRemade bounds how often an injection is made again: some strategies have no such point.
	maxRemade = 10
	// workPoint is where additional work is done.
	workPoint = sale.Read
)

// next plans the next request. It chooses the next shop that is neither down nor kept for one
// request alone. remake allows an injection that missed its point to be made again.
func (c *customers) next(inject func(n int) scenario.Injection, remake bool) *hit {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := &hit{number: len(c.hits), done: make(chan struct{})}
	c.hits = append(c.hits, h)
	if inject != nil {
		h.injection = inject(h.number)
	}
	if remake && len(c.again) > 0 && !h.injection.HasFault() && c.remade < maxRemade {
		h.injection, c.again = c.again[0], c.again[1:]
		c.remade++
	}
	h.wish = c.wishes.next(h.number, h.injection.HasFault())
	for h.injection.InTurn && c.taken {
		c.calm.Wait()
	}
	c.taken = c.taken || h.injection.InTurn
	now := time.Now()
	h.shop = c.turn
	for i := range c.shops {
		at := (c.turn + i) % len(c.shops)
		if s := c.shops[at]; s.alone == 0 && now.After(s.down) {
			h.shop = at
			break
		}
	}
	c.turn = (h.shop + 1) % len(c.shops)
	if h.injection.Alone {
		c.shops[h.shop].alone++
	}
	for h.injection.Idle && c.shops[h.shop].inFlight > 0 {
		c.calm.Wait()
	}
	c.shops[h.shop].inFlight++
	return h
}

// missed notes an injection whose point was not reached.
func (c *customers) missed(i scenario.Injection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.again = append(c.again, i)
}

func (c *customers) answered(h *hit, answer load.Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.take(answer)
	c.wishes.answered(h)
	if h.Outcome == load.Refused || h.injection.Idle {
		c.shops[h.shop].down = time.Now().Add(downFor)
	}
	if h.injection.Alone {
		c.shops[h.shop].alone--
	}
	if h.injection.InTurn {
		c.taken = false
	}
	c.shops[h.shop].inFlight--
	c.calm.Broadcast()
}

// unknown reports whether a request may have sold without an answer that says so. It is for the
// time after the attack, as is the rest of this file.
func (c *customers) unknown() bool {
	return slices.ContainsFunc(c.hits, func(h *hit) bool { return h.Outcome == load.Unknown || h.Outcome == "" })
}

func (c *customers) sentFault() bool {
	return slices.ContainsFunc(c.hits, func(h *hit) bool { return h.injection.HasFault() })
}

func (c *customers) records() []load.Record {
	records := make([]load.Record, len(c.hits))
	for i, h := range c.hits {
		records[i] = load.Record{Answer: h.Answer, Scheduled: h.scheduled}
	}
	return records
}
