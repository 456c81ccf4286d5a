package trial

import (
	"context"
	"errors"
	"sync"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/seen"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy/declared"
)

// standstill is what was found when nothing was sold any more.
type standstill struct {
	locks  []explain.Lock // in Redis
	unseen error          // why Redis was not asked
	fenced bool           // the fence refuses every sale
}

var errNotAsked = errors.New("no look at Redis: --redis says where it is")

// lookAtStandstill asks Redis for the item's lock.
func (a *attack) lookAtStandstill(ctx context.Context) *standstill {
	client := a.LocksIn()
	if client == nil {
		return &standstill{unseen: errNotAsked}
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	keys, err := seen.Keys(ctx, client, lockKeys(a.item)...)
	found := &standstill{unseen: err}
	for _, key := range keys {
		found.locks = append(found.locks, explain.Lock{Key: key.Name, TTL: key.Left()})
	}
	return found
}

// endless reports whether the lock has no end that the cell could see, by its server, or belongs to a sale that
// waits for it, by the points of that sale.
func (a *attack) endless(ctx context.Context) bool {
	moved := a.progress.now().last
	if _, waitsForItself := a.feed.waitsForItself(moved); waitsForItself {
		return true
	}
	if a.Of.Lease.Kept == declared.LeaseInValue {
		return false
	}
	return a.endlessIn(ctx, a.lockState(ctx)) && a.progress.now().last.Equal(moved) // no sale has ended between the looks
}

// endlessIn is false while a sale that has taken the lock is not answered: on a slow machine, its holder is at work. What the
// shops have written of it by now is read first.
func (a *attack) endlessIn(ctx context.Context, s lockState) bool {
	looked := time.Now()
	for shop := range a.traces {
		if !a.feed.await(ctx, func() bool { return a.feed.readAt(shop).After(looked) }) {
			return false
		}
	}
	if _, atWork := a.feed.find(func(e labmode.Event) bool {
		h := a.customers.byID(e.Request)
		return e.Point == sale.Acquired && h != nil && !h.late && !h.Answered()
	}); atWork {
		return false
	}
	for _, k := range s.keys {
		if k.end.IsZero() || a.outlasts(k.end.Sub(k.now)) {
			return true
		}
	}
	return false
}

// waitsForItself finds a sale that was refused by its own lock after a time.
func (f *feed) waitsForItself(after time.Time) (labmode.Event, bool) {
	has := map[string]bool{}
	return f.find(func(e labmode.Event) bool {
		has[e.Request] = (has[e.Request] || e.Point == sale.Acquired) && e.Point != sale.Released
		return has[e.Request] && e.Point == sale.Waiting && e.Time.After(after)
	})
}

// lockKeys are where Redis keeps an item's lock. What else a strategy keeps there is watched as a lock is.
func lockKeys(item audit.Run) []string {
	return append(seen.LockKeys(item.ItemID, item.State), declared.KeysOf(item.State.Keys, item.ItemID)...)
}

// waiting says what the requests wait for.
func (s standstill) waiting() *verdict.Waiting {
	w := &verdict.Waiting{}
	switch {
	case s.fenced:
		w.Fenced = true
	case s.unseen != nil:
		w.Unseen = s.unseen.Error()
	case len(s.locks) > 0:
		w.Lock = s.locks[0].Key
		if ttl := s.locks[0].TTL; ttl >= 0 {
			w.LeaseMS = new(round(ttl.Seconds()*1000, 0))
		}
	}
	return w
}

// progress says whether something still moves: what is sold, and which shops are away. It is safe
// for concurrent use.
type progress struct {
	mu sync.Mutex // guards the rest
	moved
	turnedAway map[load.Outcome]int // requests that were sent after last: busy, fenced, conflict
}

type moved struct {
	last       time.Time // of the last sale, or of the last return of a shop
	sold       int64     // units answered as sold
	soldOut    int       // requests of one unit answered as sold out since the last sale
	restarting int       // shops that are dead and being started
}

// halted reports whether stock is left, nobody is told otherwise, and no shop is away.
func (m moved) halted(stock int64) bool { return m.sold < stock && m.soldOut == 0 && m.restarting == 0 }

func (p *progress) start(now time.Time) { p.last, p.turnedAway = now, map[load.Outcome]int{} }

func (p *progress) now() moved {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.moved
}

func (p *progress) answered(h *Customer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch h.Outcome {
	case load.Sold:
		if !h.replayed {
			p.sold += int64(h.wish.quantity)
			p.soldOut = 0
			p.move()
		}
	case load.SoldOut:
		if h.wish.quantity == 1 { // more may be more than are left
			p.soldOut++
		}
	case load.Busy, load.Fenced, load.Conflict:
		if h.Sent.After(p.last) {
			p.turnedAway[h.Outcome]++
		}
	}
}

// move needs the lock.
func (p *progress) move() { p.start(time.Now()) }

// restart notes that a shop is dead until over is called.
func (p *progress) restart() (over func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.restarting++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.restarting--
		p.move()
	}
}

// refuses reports whether so many requests were rejected as busy since the last sale, or refused by the fence,
// with stock left and no shop away. It then counts those that were busy anew.
func (p *progress) refuses(stock int64, requests int) (busy, fenced bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.halted(stock) {
		return false, false
	}
	busy, fenced = p.turnedAway[load.Busy] >= requests, p.turnedAway[load.Fenced] >= requests
	if busy {
		p.turnedAway[load.Busy] = 0
	}
	return busy, fenced
}

// starves reports whether so many requests lost against others since the last sale, with stock left and no shop away.
func (p *progress) starves(stock int64, requests int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.halted(stock) && p.turnedAway[load.Conflict] >= requests
}

// over reports whether there is nothing more to learn. A fixed load ends when all requests are
// sent, the others when the play is over and all is sold. Either ends when nothing is sold any more. Customers whose
// strategy declares that sales may starve each other give up when as many in a row as a fixed load has were sent away.
func (a *attack) over(ctx context.Context, sent int) bool {
	switch {
	case a.Scenario.Comparable && sent >= a.o.Requests:
		return true
	case a.standsStill(ctx):
		return true
	case a.Scenario.Comparable:
		return false
	}
	select {
	case <-a.play.over:
	default:
		return false
	}
	if a.Of.Starves && a.progress.starves(a.o.Stock, a.o.Requests) {
		a.demandLeft = true
		return true
	}
	now := a.progress.now()
	return now.restarting == 0 && now.soldOut > a.o.Workers
}

// standsStill reports whether nothing is sold any more. Every customer was rejected since the last
// sale, and the lock has no end in sight, or belongs to the sale that waits for it. Or the fence refused them
// all: where tokens grow, it admits the latest. Without traces a lock cannot be seen: then it is silence that
// counts.
func (a *attack) standsStill(ctx context.Context) bool {
	var still, busy, fenced bool
	switch {
	case a.kills != nil:
		now := a.progress.now()
		still = now.halted(a.o.Stock) && time.Since(now.last) > a.patience()
	case a.play.idle():
		busy, fenced = a.progress.refuses(a.o.Stock, a.o.Workers)
		still = fenced || busy && a.endless(ctx)
	}
	if still {
		a.stuck = a.lookAtStandstill(ctx)
		a.stuck.fenced = fenced
	}
	return still
}

// patience is how long nothing may be sold before that counts as stuck, where no lock can be seen. It is six leases, and
// not less than one sale, or its fault, may take on a busy machine.
func (a *attack) patience() time.Duration { return max(6*a.o.Lease, 1500*time.Millisecond) }
