package trial

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/words"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy/declared"
)

// play plays the scenario's [Play] in an attack: it holds sales, waits for what is to be
// seen, and lets them go on. It is safe for concurrent use.
type play struct {
	Play
	attack *attack
	over   chan struct{} // closed when nothing is held any more
	// relieve ends what Intervene did, and what the record says of it.
	relieve func()

	mu        sync.Mutex      // guards the rest
	exited    map[int]bool    // shops that have ended
	view      explain.Request // the page view; zero for none
	first     *Customer       // the sale that is held or killed; nil until it has reached its point
	at        time.Time       // when it had reached that
	holding   bool            // the first sale is held
	committer *Customer       // the sale that is held before its commit; nil for none
	second    string          // the request of the sale that entered and is held; empty for none
	closing   bool            // no sale becomes the second one any more
	seen      []Seen
	unseen    Sight // what was to be seen and was not; empty where all was
}

// Seen is something that a cell waited for and saw.
type Seen struct {
	Sight   Sight   `json:"sight"`
	How     How     `json:"how,omitempty"`     // where it can be seen in several ways
	Request string  `json:"request,omitempty"` // whose sale showed it
	AtMS    float64 `json:"at_ms"`             // from the beginning of the attack
}

// How says which of several things was seen.
type How string

const (
	Ended   How = "ended"    // the lease
	Renewed How = "renewed"  // the lease
	NoLease How = "no-lease" // there is none
	Entered How = "entered"  // the sale
	KeptOut How = "kept-out" // the sale
	Granted How = "granted"  // the second acquire
	Refused How = "refused"  // the second acquire
)

const (
	// playPatience bounds the wait for all that is to be seen after the first sale has reached its point. The cell
	// decides nothing by a sight that was not seen by then: see judge. It stays below the patience of customers.
	playPatience = 12 * time.Second
	// longestPlayed is the longest lease whose end is seen by then.
	longestPlayed = 10 * time.Second
	// holdAtMost bounds a hold that nobody ends.
	holdAtMost = 18 * time.Second
)

func newPlay(a *attack) *play {
	return &play{Play: a.Scenario.Crowd, attack: a, over: make(chan struct{}), relieve: func() {}, exited: map[int]bool{}}
}

// run plays. It returns when nothing is held any more.
func (p *play) run(ctx context.Context) {
	defer p.finish(ctx)
	if p.attack.seesBeforeCommit() {
		seen := p.beforeCommit(ctx)
		if held := p.committing(); held != nil {
			p.release(ctx, held)
		}
		if !seen {
			return
		}
	}
	if p.IsZero() {
		return
	}
	if p.OfView() {
		p.aroundView(ctx)
		return
	}
	if p.At != "" && !p.await(ctx, ReachedPoint, p.reached) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, playPatience)
	defer cancel()
	if p.Paused {
		p.attack.problems.add(p.firstShop().Pause())
	}
	was := p.attack.fullState(ctx) // no other sale is under way
	if p.Intervene != nil {
		if !p.intervene(ctx) {
			return
		}
		was.lost = !was.holds(p.attack.lockState(ctx))
	}
	if !p.Lose { // where another one writes first, there may be no COMMIT
		p.attack.customers.goOn(p.Third)
	}
	after := time.Now()
	if end, ok := was.ends(); ok && slices.Contains(p.Until, LeaseOver) && p.attack.outlasts(time.Until(end)) {
		p.notSeen(LeaseOver)
		return
	}
	for _, sight := range p.Until {
		if !p.await(ctx, sight, func() (Seen, bool) { return p.look(ctx, sight, after, &was) }) {
			return
		}
	}
	if end, ok := was.ends(); p.Settled && ok && time.Now().After(end) {
		p.attack.problems.add(fmt.Errorf("the lease of the first sale was over before another sale was seen"))
	}
	if p.Third {
		p.third(ctx)
	}
}

// look looks for one of Until, in which the first sale has the lock as was says.
func (p *play) look(ctx context.Context, sight Sight, after time.Time, was *lockState) (Seen, bool) {
	first := p.firstHit()
	switch sight {
	case Exited:
		p.mu.Lock()
		defer p.mu.Unlock()
		return Seen{}, p.exited[first.shop]
	case LeaseOver:
		if _, leased := was.ends(); !leased {
			return Seen{How: NoLease}, true
		}
		is := p.attack.lockState(ctx)
		how := was.since(is)
		if how == Renewed && (p.Paused || p.Relieve != nil) {
			was.keys, how = is.keys, "" // by a request that was on its way to the server
		}
		return Seen{How: how}, how != ""
	case Again:
		return p.secondAcquire()
	case AnswerLost:
		_, lost := p.attack.feed.find(func(e labmode.Event) bool { return e.Request == first.id && e.Facts[labmode.LostFact] != nil })
		return Seen{Request: first.id}, lost
	}
	if e, ok := p.entered(p.at, first.id); ok {
		return Seen{How: Entered, Request: e.Request}, true
	}
	if p.Kill { // the sale that keeps others out is dead
		return Seen{}, false
	}
	return p.keptOut(ctx, after, first.shop, *was, first.id)
}

// third lets the first sale go on while the second is held, and waits for a third one.
func (p *play) third(ctx context.Context) {
	first := p.firstHit().id
	var was lockState
	var second string
	var from time.Time
	secondEntered := func() bool {
		e, ok := p.entered(p.at, first)
		if ok {
			was, second, from = p.attack.fullState(ctx), e.Request, e.Time
		}
		return ok
	}
	entered := secondEntered() // before the release of the first sale can change its lock
	p.letFirstGo(ctx)
	if !p.attack.feed.await(ctx, p.firstReleased) || !entered && !p.attack.feed.await(ctx, secondEntered) {
		p.notSeen(ThirdSale)
		return
	}
	released := time.Now()
	p.await(ctx, ThirdSale, func() (Seen, bool) {
		if e, ok := p.entered(from, first, second); ok {
			return Seen{How: Entered, Request: e.Request}, true
		}
		return p.keptOut(ctx, released, p.attack.customers.shopOf(second), was, first, second)
	})
}

// await waits until look has found what the sight is, and notes it.
func (p *play) await(ctx context.Context, sight Sight, look func() (Seen, bool)) bool {
	var found Seen
	var seen bool
	p.attack.feed.await(ctx, func() bool {
		missed := sight == ReachedPoint && p.missed() // before the look: the point can be read in between
		found, seen = look()
		return seen || missed
	})
	if !seen {
		p.notSeen(sight)
		return false
	}
	p.saw(sight, found)
	return true
}

// missed reports whether no sale will be the first any more: its shop's trace was read since its answer, and does not
// show its point. A sale has [playPatience] to come to one that is behind its answer.
func (p *play) missed() bool {
	a := p.attack
	pending, answered := a.customers.firstOfPlay()
	if answered != nil {
		latest := answered.answeredAt()
		if answered.Outcome == load.Sold && (a.Of.AnswersFirst || p.At == sale.Answered) {
			latest = latest.Add(playPatience)
		}
		return a.feed.readAt(answered.shop).After(latest)
	}
	return !pending && a.progress.now().soldOut > a.o.Workers
}

// idle reports whether nobody is held.
func (p *play) idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.holding && p.second == ""
}

func (p *play) saw(sight Sight, found Seen) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found.Sight, found.AtMS = sight, words.Rounded(time.Since(p.attack.begun))
	p.seen = append(p.seen, found)
}

func (p *play) notSeen(sight Sight) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unseen = sight
}

func (p *play) intervene(ctx context.Context) bool {
	a, shop := p.attack, p.firstHit().shop
	at := shop
	if p.Relieve == nil {
		at = wholeTestbed
	}
	over := a.record.intervention(p.Intervention, at)
	reached := Reached{Shop: shop, Keys: a.keys()}
	if err := p.Intervene(ctx, a.Testbed, reached); err != nil {
		p.attack.problems.add(fmt.Errorf("intervene: %w", err))
		return false
	}
	p.relieve = over
	if p.Relieve != nil {
		p.relieve = func() {
			select {
			case <-p.firstHit().done:
			case <-a.ctx.Done():
			}
			if err := p.Relieve(context.WithoutCancel(ctx), a.Testbed, reached); err != nil {
				p.attack.problems.add(fmt.Errorf("relieve: %w", err))
			}
			over()
		}
	}
	p.saw(Intervened, Seen{})
	return true
}

// longLease is the lease of a sale whose lease is not to end.
func (a *attack) longLease() time.Duration {
	switch a.Of.Lease.Kept {
	case declared.NoLease:
		return a.o.Lease
	case declared.LeaseInMySQL: // what a sale reserves and does not buy comes back after that
		return 4 * a.o.Lease
	default:
		return max(LongLease, a.o.Lease)
	}
}

// outlasts reports whether a lock with so much left outlasts the cell, and was never asked for: its end will
// not be seen.
func (a *attack) outlasts(left time.Duration) bool { return left > max(maxCell, a.longLease()) }

// faultOf returns the fault of a sale, and the lease of its lock. Only the first sale's lease is to
// end.
func (p *play) faultOf(h *Customer) (labmode.Fault, time.Duration) {
	long := p.attack.longLease()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case h.first && p.Kill:
		return labmode.Fault{Point: p.At, Action: labmode.Kill}, p.attack.o.Lease
	case h.first && p.Lose:
		return labmode.Fault{Point: p.At, Action: labmode.Lose}, long
	case h.first && p.Settled:
		return labmode.Fault{Point: p.At, Action: labmode.Hold, For: holdAtMost}, long
	case h.first:
		return labmode.Fault{Point: p.At, Action: labmode.Hold, For: holdAtMost}, p.attack.o.Lease
	case p.Third && p.first != nil && !p.closing:
		return labmode.Fault{Point: sale.Read, Action: labmode.Hold, For: holdAtMost}, long
	}
	return labmode.Fault{}, long
}

// passed is called for each point that a sale has passed. Sales that are held for nothing go on.
func (p *play) passed(ctx context.Context, e labmode.Event) {
	if _, faulty := e.Facts["fault"]; !faulty {
		return
	}
	h := p.attack.customers.byID(e.Request)
	switch {
	case h == nil:
		return
	case h.late:
		if p.attack.last.here(); p.attack.ctx.Err() != nil {
			go p.release(ctx, h)
		}
		return
	case p.IsZero() && !p.attack.holdsBeforeCommit(h):
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closing:
		if h.fault.Action == labmode.Hold {
			go p.release(ctx, h)
		}
	case p.committer == nil && p.attack.holdsBeforeCommit(h):
		p.committer = h
	case h.first:
		p.first, p.at, p.holding = h, e.Time, !p.Kill && !p.Lose
	case p.first != nil && p.second == "" && enters(e):
		p.second = e.Request
	default:
		p.attack.background.Go(func() { p.release(ctx, h) })
	}
}

func (p *play) shopExited(shop int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.exited[shop] = true
}

// reached reports whether the first sale is at its point.
func (p *play) reached() (Seen, bool) {
	first := p.firstHit()
	if first == nil {
		return Seen{}, false
	}
	return Seen{Request: first.id}, true
}

func (p *play) firstHit() *Customer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.first
}

func (p *play) firstShop() *rig.TestbedShop { return p.attack.Testbed.Shops[p.firstHit().shop] }

// enters reports whether the event shows that a sale has entered: it has read the stock, or has
// written where nothing is read.
func enters(e labmode.Event) bool {
	_, read := e.Facts["stock"]
	return e.Point == sale.Written || e.Point == sale.Read && read
}

// entered returns the event by which a sale has entered after a time, besides those of some requests.
func (p *play) entered(after time.Time, besides ...string) (labmode.Event, bool) {
	return p.attack.feed.find(func(e labmode.Event) bool { return enters(e) && p.counts(e, after, besides) })
}

func (p *play) counts(e labmode.Event, after time.Time, besides []string) bool {
	h := p.attack.customers.byID(e.Request)
	return h != nil && h.number > p.firstHit().number && // a sale before it may still be written behind its answer
		e.Time.After(after) && !slices.Contains(besides, e.Request) && (!p.FromFirstShop || h.shop == 0)
}

// keptOut looks for a sale of another shop that was refused after a time, while the lock is as was
// says, or that waits in MySQL. A refusal by a lock of the shop itself says nothing of other shops.
func (p *play) keptOut(ctx context.Context, after time.Time, holder int, was lockState, besides ...string) (Seen, bool) {
	a := p.attack
	if waiting := p.waitsInMySQL(ctx, was); waiting || !a.Of.Passes(sale.Waiting) {
		return Seen{How: KeptOut}, waiting
	}
	alone := len(a.Shops) == 1
	e, refused := a.feed.find(func(e labmode.Event) bool {
		return e.Point == sale.Waiting && p.counts(e, after, besides) && (alone || a.customers.shopOf(e.Request) != holder)
	})
	if !refused || !alone && !was.holds(a.lockState(ctx)) {
		return Seen{}, false
	}
	return Seen{How: KeptOut, Request: e.Request}, true
}

// waitsInMySQL reports whether MySQL makes a sale wait for a transaction that was open before.
func (p *play) waitsInMySQL(ctx context.Context, was lockState) bool {
	a := p.attack
	if !a.Of.WaitsInMySQL {
		return false
	}
	waits, err := a.Waits.Look(ctx)
	if err != nil && ctx.Err() == nil {
		p.attack.problems.add(err)
	}
	return waits.OnItem(a.item.ItemID, was.transactions)
}

// secondAcquire looks for a sale that has taken its own lock again, or was refused.
func (p *play) secondAcquire() (Seen, bool) {
	has := map[string]bool{}
	e, found := p.attack.feed.find(func(e labmode.Event) bool {
		again := has[e.Request]
		has[e.Request] = (again || e.Point == sale.Acquired) && e.Point != sale.Released
		return again && (e.Point == sale.Acquired || e.Point == sale.Waiting)
	})
	if e.Point == sale.Acquired {
		return Seen{How: Granted, Request: e.Request}, found
	}
	return Seen{How: Refused, Request: e.Request}, found
}

// firstReleased reports whether the first sale has released its lock, or is over.
func (p *play) firstReleased() bool {
	first := p.firstHit()
	_, released := p.attack.feed.find(func(e labmode.Event) bool { return e.Request == first.id && e.Point == sale.Released })
	return released || first.Answered()
}

func (p *play) letFirstGo(ctx context.Context) {
	p.mu.Lock()
	first, held := p.first, p.holding
	p.mu.Unlock()
	if !held {
		return
	}
	if p.Paused {
		p.attack.problems.add(p.firstShop().Resume())
	}
	first.letGo = time.Now()
	p.release(ctx, first)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holding = false
}

// finish lets every sale go on.
func (p *play) finish(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	p.mu.Lock()
	p.closing = true
	second := p.second
	p.mu.Unlock()
	p.letFirstGo(ctx)
	if second != "" {
		p.release(ctx, p.attack.customers.byID(second))
		p.mu.Lock()
		p.second = ""
		p.mu.Unlock()
	}
	p.relieve()
	close(p.over)
	p.attack.customers.goOn(false)
}

func (p *play) release(ctx context.Context, h *Customer) {
	if err := load.Release(ctx, p.attack.Shops[h.shop].URL, h.id); err != nil && p.attack.ctx.Err() == nil {
		p.attack.problems.add(err)
	}
}
