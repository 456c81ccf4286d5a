package trial

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
)

// attack is the load on one cell, and what the scenario does meanwhile. Once run has returned,
// nothing changes any more.
type attack struct {
	*Show
	item audit.Run
	ctx  context.Context // of the attack, once it runs

	following context.Context // of those who read the traces, until unfollow
	unfollow  func()

	play  *play        // what goes wrong
	last  *lastUnit    // nil for none
	kills map[int]bool // requests that kill shops which were given by address; nil where the play plays

	begun, ended time.Time
	requests     int         // of the attack; those behind them came when it had ended
	progress     progress    // what is sold, and which faults are under way
	record       record      // what was done to the testbed, and what Redis announced
	problems     problems    // what the harness did wrong
	stuck        *standstill // nil while something is sold; set by the goroutine that paces the load
	demandLeft   bool        // it was ended while it still sold, or when its customers gave up; set as stuck is
	usage        *usage
	looks        atomic.Int64 // statements to MySQL that serve only to watch
	deadlocks    func() *int64
	away         sync.Map // indexes of the shops that were given by address, and whose return is awaited, or did not come
	restocks     []units  // that came after the attack
	sentAway     string   // the request that [attack.unitsLeft] has found

	background sync.WaitGroup // watches, interventions and restarts
}

// problems are failures of the harness. It is safe for concurrent use.
type problems struct {
	mu  sync.Mutex
	err error
}

func (p *problems) add(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = errors.Join(p.err, err)
}

// attack has a crowd buy, and judges the cell.
func (s *Show) attack(ctx context.Context) error {
	r := s.result
	a := newAttack(s)
	a.following, a.unfollow = context.WithCancel(ctx)
	defer a.feed.following.Wait()
	defer a.unfollow()
	failed := a.run(ctx)
	if err := a.repair(ctx); err != nil {
		failed = errors.Join(failed, fmt.Errorf("after: %w", err))
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := a.measure(ctx, r); err != nil {
		return err
	}
	evidence, err := a.evidence(ctx)
	if err != nil {
		return err
	}
	r.Conclude(a.judge(r, evidence, failed))
	if verdict.Of(r.Verdict).Bad {
		r.WouldHold = s.Scenario.WouldHold(s.Of, s.o.Offered)
	}
	a.see(Look{At: time.Now(), Counts: audit.Counts{InitialStock: s.o.Stock, Restocked: r.Restocked, Remaining: r.Remaining, Sold: r.Sold, Oversold: r.Oversold}})
	a.see(evidence)
	r.Timeline = timeline(evidence, a.customers.hits)
	if r.Verdict != verdict.Invalid {
		evidence.Verdict = r.Verdict
		r.Explanation = explain.Explain(ctx, evidence)
	}
	return s.o.Records.Write(s.Of.Name+"/"+s.Scenario.Name, a.customers.records())
}

func newAttack(s *Show) *attack {
	a := &attack{Show: s, item: s.Items[0], usage: &usage{}, deadlocks: func() *int64 { return nil }}
	a.record.watch, a.play = s.o.Watch, newPlay(a) // also where the cell cannot be prepared: what it came to names the play
	return a
}

// run attacks until there is nothing more to learn. An error means that the harness failed.
func (a *attack) run(ctx context.Context) error {
	if prepare := a.Scenario.Crowd.Prepare; prepare != nil {
		if err := prepare(ctx, a.Testbed); err != nil {
			return fmt.Errorf("prepare: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, a.longest())
	defer a.background.Wait()
	defer cancel()
	a.ctx = ctx
	a.markTraces()
	a.plan()
	if err := a.watchLocks(ctx); err != nil {
		return err
	}
	a.restartTheDead(ctx)
	a.usage = a.startUsage(ctx)
	a.begun = time.Now()
	a.progress.start(a.begun)
	watching, unwatch := context.WithCancel(ctx)
	defer unwatch()
	a.startWatch(watching)
	if play := a.play.Play; play.Intervene == nil && play.Intervention != "" {
		defer a.record.intervention(play.Intervention, 0)() // Prepare is done to the first shop, and lasts
	}
	for shop := range a.traces {
		a.feed.following.Go(func() { a.follow(a.following, shop, a.passed) })
	}
	playing, endPlay := context.WithCancel(ctx)
	defer endPlay()
	a.background.Go(func() { a.play.run(playing) })
	a.crowd(ctx, load.Load{Shape: a.o.Shape, Workers: a.o.atOnce(), Over: func(sent int) bool { return a.over(ctx, sent) }})
	endPlay()
	<-a.play.over
	a.ended, a.requests = time.Now(), len(a.customers.hits)
	a.usage.stop(a.progress.now().sold)
	unwatch()
	if a.Of.AnswersFirst && a.sees() {
		writing, cancel := context.WithTimeout(ctx, writePatience)
		a.feed.await(writing, a.allWritten)
		cancel()
	}
	a.afterwards(ctx)
	switch {
	case !errors.Is(ctx.Err(), context.DeadlineExceeded):
	case time.Since(a.progress.now().last) <= stillSelling || a.Of.Starves:
		a.demandLeft = true
	default:
		a.problems.add(fmt.Errorf("neither sold out nor stuck after %s", a.longest()))
	}
	a.problems.mu.Lock()
	defer a.problems.mu.Unlock()
	return a.problems.err
}

// writePatience is how long orders may take that were answered before they are written. A write that waits for
// others is repeated after five seconds.
const writePatience = 30 * time.Second

// crowd lets customers buy side by side.
func (a *attack) crowd(ctx context.Context, orders load.Load) {
	orders.Timeout = a.o.Timeout
	a.problems.add(orders.Run(ctx, func() (load.Order, bool) { return a.next(ctx) }, a.answered))
}

// longest bounds an attack that neither sells out nor gets stuck.
func (a *attack) longest() time.Duration { return maxCell + a.o.Shape.Due(a.o.Requests) }

// stillSelling is how long ago the last sale may be of an attack that ran out of time while it sold.
const stillSelling = 5 * time.Second

// sees reports whether what sales do can be waited for.
func (a *attack) sees() bool { return len(a.traces) > 0 && a.kills == nil }

// plan decides what goes wrong: the scenario's play, or, of shops that were given by address, which requests kill one.
func (a *attack) plan() {
	rng := rand.New(rand.NewPCG(a.Seed, 0))
	a.last = newLastUnit(a)
	given := a.Scenario.Crowd
	switch {
	case given.IsZero():
	case a.Testbed == nil:
		a.kills, a.play.Play = killing(rng), Play{}
	case given.OfView():
		a.customers.pending = true
	case given.At != "":
		a.customers.firstAt = early(rng)
		a.customers.apart = given.Kill || given.Paused || given.Relieve != nil
		if given.FromFirstShop {
			a.customers.notFirst = 0
		}
	}
}

// early is the number of the first request with a fault, counted from 0: while there is stock.
func early(rng *rand.Rand) int { return 3 + rng.IntN(3) }

// killing chooses requests that kill their shop. The lab does not see when that has started again, so there are several.
// The same seed chooses the same ones.
func killing(rng *rand.Rand) map[int]bool {
	const times, gap = 5, 4
	chosen, at := map[int]bool{}, early(rng)
	for range times {
		chosen[at] = true
		at += gap + rng.IntN(3)
	}
	return chosen
}

// next makes the next order. It is false when there is to be none any more.
func (a *attack) next(ctx context.Context) (load.Order, bool) {
	if a.progress.now().soldOut > a.o.Workers {
		select { // there is nothing more to buy until the play goes on
		case <-a.play.over:
		case <-ctx.Done():
		}
	}
	a.last.wait(ctx)
	h := a.customers.next(ctx)
	if h == nil {
		return load.Order{}, false
	}
	if h.first && a.Of.AnswersFirst {
		a.feed.await(ctx, a.allWritten)
	}
	h.nested = a.Scenario.Crowd.Nested
	if !a.play.IsZero() {
		h.fault, h.lease = a.play.faultOf(h)
	}
	if a.holdsBeforeCommit(h) {
		h.nested, h.fault = false, labmode.Fault{Point: sale.Released, Action: labmode.Hold, For: holdAtMost}
		h.wait = playPatience // one that gives up reads nothing; its shop gives up earlier than that
	}
	if h.late {
		h.fault = labmode.Fault{Point: sale.Read, Action: labmode.Hold, For: holdAtMost}
	}
	h.scheduled = time.Now()
	if !a.ended.IsZero() {
		return a.order(h), true
	}
	if a.kills[h.number] {
		h.fault = labmode.Fault{Point: a.Scenario.Crowd.At, Action: labmode.Kill}
	}
	if !a.o.Shape.IsZero() {
		h.scheduled = a.begun.Add(a.o.Shape.Due(h.number))
	}
	a.see(h.asked())
	return a.order(h), true
}

// allWritten reports whether each order that was answered as sold has been written, unless its shop was
// killed, or never learned of it.
func (a *attack) allWritten() bool {
	written := map[string]bool{}
	a.feed.find(func(e labmode.Event) bool {
		written[e.Request] = written[e.Request] || e.Point == sale.Written
		return false
	})
	return a.customers.all(func(h *Customer) bool {
		return h.Outcome != load.Sold || h.replayed || h.fault.Action == labmode.Kill || h.fault.Action == labmode.Lose || written[h.id]
	})
}

// answered notes one answer, or the lack of one.
func (a *attack) answered(answer load.Answer) {
	h := answer.Order.Tag.(*Customer)
	a.customers.answered(h, answer)
	a.progress.answered(h)
	if a.ended.IsZero() {
		a.see(a.request(h))
	}
	a.last.answered(h)
	if h.Outcome == load.SoldOut {
		a.usage.stop(a.progress.now().sold)
	}
	close(h.done)
	a.feed.poke()
	a.awaitReturn(h)
}
