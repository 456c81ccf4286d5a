package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"sync"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/seen"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy/declared"
)

// Show is one strategy on its bench while the scenario plays. Its exported methods are for plays of a few customers. All but
// Ask, Note and Fail are called by one goroutine at a time.
type Show struct {
	*Group
	Of    declared.Strategy
	Items []audit.Run // several of baskets alone

	run       string // what its orders are counted under
	customers *customers
	result    *Result

	Stuck   bool   // nobody is sold anything any more
	StuckAt string // the lock without an end that refuses everybody; empty for none
	story   []words.Text
	reader  *Customer                // the sale that was held when it had read; nil for none
	atRead  []explain.DatabaseServer // what the servers said of it then

	mu      sync.Mutex // guards the rest
	notes   []explain.ServersNote
	problem error // of the harness
}

// Wish is what a customer of a few posts, and what is done to its sale.
type Wish struct {
	Name     string     // for the story; may be empty
	Shop     int        // index
	Lines    []int      // the indexes of the items, in the order in which they are posted; none for the first item
	Quantity int        // of each; 0 for 1
	By       string     // the strategy; empty for that of the show
	At       sale.Point // where Action is done
	Action   labmode.Action
	Lease    time.Duration // of its locks; 0 for that of the shops
	Hesitant bool          // it waits for its locks no longer than is usual: the play goes on when it is refused
	Beside   bool          // it is in the way of others: that it is refused is not counted

	Act       load.Act  // with a reservation; empty for an order
	Of        *Customer // the one who has reserved; nil for a new reservation, and for a sweep
	Reference string    // of the payment that a confirmation has
	Stolen    bool      // the payment is another customer's
	Seconds   int       // for which units are reserved
}

// Ask sends what a new customer wants. It does not wait for the answer.
func (s *Show) Ask(ctx context.Context, w Wish) *Customer {
	c := s.customers.ask(w)
	if s.Database != nil {
		c.server = s.Database.LedTo(w.Shop)
	}
	order := s.order(c)
	order.Strategy = cmp.Or(w.By, order.Strategy)
	if s.Scenario.OfBaskets() {
		order.AsPosted = true
		if !w.Hesitant {
			order.Wait = patience // no stall of the machine has it refused
		}
	}
	send := load.Send
	if s.Service != nil {
		send = s.Service.Send
	}
	go func() {
		answer := send(ctx, order)
		s.customers.mu.Lock()
		c.take(answer)
		s.customers.mu.Unlock()
		close(c.done)
		s.feed.poke()
	}()
	return c
}

// AskAgain sends what a customer wants once more. That it was refused before counts no more.
func (s *Show) AskAgain(ctx context.Context, c *Customer) *Customer {
	c.wanted.Beside = true
	again := c.wanted
	again.At, again.Action, again.Beside = "", "", false
	return s.Ask(ctx, again)
}

// ask makes the request of a customer of a few.
func (c *customers) ask(w Wish) *Customer {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.add()
	h.wanted, h.shop, h.lease = w, w.Shop, w.Lease
	h.wish = wish{quantity: max(w.Quantity, 1)}
	h.scheduled = time.Now()
	if w.Act == load.Reserving {
		h.wish.key = "reservation-" + h.id
	} else if w.Of != nil {
		h.wish = w.Of.wish
	}
	if w.Action != "" {
		h.fault = labmode.Fault{Point: w.At, Action: w.Action}
		switch w.Action {
		case labmode.Hold:
			h.fault.For, h.holds = labmode.MaxDuration, 1
		case labmode.HoldEach:
			h.fault.For, h.holds = labmode.MaxDuration, math.MaxInt
		}
	}
	return h
}

// order is the request of a customer as it is sent.
func (s *Show) order(c *Customer) load.Order {
	o := load.Order{
		Shop: s.Shops[c.shop].URL, ItemID: s.Items[0].ItemID, Quantity: c.wish.quantity, RequestID: c.id, IdempotencyKey: c.wish.key,
		Strategy: s.Of.Name, Run: s.run, Fault: c.fault, Nested: c.nested, Lease: c.lease, Wait: c.wait, Tag: c,
	}
	if w := c.wanted; w.Act != "" {
		o.Act, o.Reference, o.Seconds, o.Subject = w.Act, w.Reference, w.Seconds, "customer-"+w.Name
		if w.Of != nil {
			o.Reservation, o.Subject = w.Of.reserved, w.Of.Order.Subject
		}
		if w.Act.Staff() {
			o.Shop, o.Subject = s.Shops[c.shop].Staff, "backend"
		}
	}
	if lines := c.wanted.Lines; len(lines) > 0 {
		o.ItemID = s.Items[lines[0]].ItemID
		for _, line := range lines[1:] {
			o.More = append(o.More, s.Items[line].ItemID)
		}
	}
	return o
}

// Name is that of the story.
func (h *Customer) Name() string { return h.wanted.Name }

// Rename gives another name to a customer who has turned out to be another one.
func (h *Customer) Rename(name string) { h.wanted.Name = name }

// Done is closed when the customer has been answered, or will not be.
func (h *Customer) Done() <-chan struct{} { return h.done }

// Answered reports whether the customer has been answered, or will not be.
func (h *Customer) Answered() bool {
	select {
	case <-h.done:
		return true
	default:
		return false
	}
}

// Got is how the customer was answered, empty before that.
func (h *Customer) Got() load.Outcome {
	if !h.Answered() {
		return ""
	}
	return h.Outcome
}

// Overdue waits until the time of a reservation is over, by the clock of the database.
func (s *Show) Overdue(ctx context.Context, of *Customer) error {
	return s.Await(ctx, fmt.Sprintf("the time of %s's reservation is over", of.Name()), func() (over bool, err error) {
		err = s.Store.Pool().QueryRowContext(ctx, "SELECT live_until < UTC_TIMESTAMP(6) FROM holds WHERE public_id = ?", of.reserved).Scan(&over)
		return over, err
	})
}

// Reserved reports whether a customer has got a reservation.
func (h *Customer) Reserved() bool { return h.reserved != "" }

// Release lets the sale of a customer go on that is held. Of any other it does nothing.
func (s *Show) Release(ctx context.Context, of *Customer) {
	if of.holds > 0 && load.Release(ctx, s.Shops[of.shop].URL, of.id) == nil { // it may not be held yet
		of.holds, of.letGo = of.holds-1, time.Now()
	}
}

// Passes is how often the sale of a customer has passed one of these points.
func (s *Show) Passes(of *Customer, points ...sale.Point) int {
	return s.feed.count(func(e labmode.Event) bool { return e.Request == of.id && slices.Contains(points, e.Point) })
}

// Reaches is how often the sale of a customer has reached the point of its fault.
func (s *Show) Reaches(of *Customer) int {
	return s.feed.count(func(e labmode.Event) bool { return e.Request == of.id && e.Facts["fault"] != nil })
}

// Reached reports whether the sale of a customer is at the point of its fault, or was.
func (s *Show) Reached(of *Customer) bool { return s.Reaches(of) > 0 }

// KeptOut reports whether a customer without an answer waits for others: by the point waiting, or in
// MySQL. Nobody else of the show may wait there.
func (s *Show) KeptOut(ctx context.Context, of *Customer) bool {
	return s.Passes(of, sale.Waiting) > 0 || !of.Answered() && s.waitsInMySQL(ctx)
}

// waitsInMySQL reports whether a statement on one of the items waits for another's transaction.
func (s *Show) waitsInMySQL(ctx context.Context) bool {
	now, err := s.Waits.Look(ctx)
	if err != nil && ctx.Err() == nil {
		s.Fail(err)
	}
	return now.On(s.Names)
}

// Names reports whether a statement or a key has the id of an item of the show in it.
func (s *Show) Names(text string) bool {
	return slices.ContainsFunc(s.Items, func(item audit.Run) bool {
		return regexp.MustCompile(fmt.Sprintf(`\b%d\b`, item.ItemID)).MatchString(text)
	})
}

// Shop is that of a customer.
func (s *Show) Shop(of *Customer) *rig.TestbedShop { return s.Testbed.Shops[of.shop] }

// ErrPassedBy is in the chain of the error of a play whose customer was sold everything and never met it.
var ErrPassedBy = fmt.Errorf("%w: a customer was sold all of it", ErrNotSeen)

// Tell adds a line to the story.
func (s *Show) Tell(line words.Text) {
	s.story = append(s.story, line)
	if s.o.Told != nil {
		s.o.Told(line)
	}
}

// Note adds what a server did or met to the record of the cell.
func (s *Show) Note(server int, what string, f explain.Facts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, explain.ServersNote{At: time.Now(), Server: server, What: words.Text{Key: what, Facts: f}})
}

// Fail notes why the cell says nothing. The first reason counts, and nil is none.
func (s *Show) Fail(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.problem == nil {
		s.problem = why
	}
}

// Buy asks for some units, and returns the outcome.
func (s *Show) Buy(ctx context.Context, shop, quantity int) load.Outcome {
	c := s.Ask(ctx, Wish{Shop: shop, Quantity: quantity})
	<-c.done
	return c.Outcome
}

// Locks returns a key of a lock in Redis that never ends, and whether there is one that does. Counters are no locks,
// and a shop that has just started leaves a key of its own: probeKey of package shop.
func (s *Show) Locks(ctx context.Context) (endless string, ends bool, err error) {
	redis := s.Testbed.Redis().Client
	keys, err := redis.Do(ctx, "KEYS", "*stock*").Slice()
	if err != nil {
		return "", false, err
	}
	var named []string
	for _, each := range keys {
		if key := each.(string); s.Names(key) || slices.Contains(s.Of.State.Locks, key) {
			named = append(named, key)
		}
	}
	found, err := seen.Keys(ctx, redis, named...)
	for _, key := range found {
		if key.Left() >= 0 {
			ends = true
		} else if !s.Of.Counts() {
			endless = key.Name
		}
	}
	return endless, ends, err
}

// finish lets everybody go on whom a play of baskets has left held, and waits for the answers. The servers of a topology
// may be gone: what is not answered there ends with ctx. A described service holds nobody.
func (s *Show) finish(ctx context.Context, failed bool) error {
	if s.Database != nil || s.Service != nil {
		return nil
	}
	for _, shop := range s.Testbed.Shops {
		_ = shop.Resume() // of one that runs, it does nothing
	}
	for _, c := range s.customers.hits {
		err := s.Await(ctx, c.Name()+" is answered", func() (bool, error) {
			s.Release(context.WithoutCancel(ctx), c) // it may be held again
			return c.Answered(), nil
		})
		if err != nil && !failed {
			return err
		}
	}
	return nil
}

// conclude counts and judges the cell of a few. failed is why the play could not be played, nil where it could.
func (s *Show) conclude(ctx context.Context, failed error) error {
	r := s.result
	r.Story, r.FirstError = s.story, s.firstFailure()
	if err := errors.Join(failed, s.problem); err != nil {
		r.Conclude(verdict.Failed("%v", err))
		return nil
	}
	facts, err := s.count(ctx, r)
	if err != nil {
		return err
	}
	judgement := facts.Verdict()
	if judgement.Kind == verdict.Stuck {
		r.Waiting = facts.Waiting
	}
	r.Conclude(judgement)
	if s.Database != nil {
		return s.explainServers(ctx, r)
	}
	return nil
}
