package trial

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy/declared"
)

// beforeCommits are the first requests of a cell whose strategy releases a lock before it commits. All are
// sent before the first sale of the play, and one after the other gets the lock. The first that has
// released it is held there until another has read, or waits in MySQL. Without that, chance would decide
// whether anybody reads in that moment.
const beforeCommits = 3

// holdsBeforeCommit reports whether this is one of those requests.
func (a *attack) holdsBeforeCommit(h *Customer) bool {
	return h.number < beforeCommits && a.seesBeforeCommit()
}

func (a *attack) seesBeforeCommit() bool {
	return a.Of.ReleasesFirst && a.sees()
}

// beforeCommit waits for what is to be seen before the commit of the sale that is held.
func (p *play) beforeCommit(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, playPatience)
	defer cancel()
	a := p.attack
	var was lockState
	return p.await(ctx, BeforeCommit, func() (Seen, bool) {
		held := p.committing()
		if held == nil {
			return Seen{}, false
		}
		if was.transactions == nil {
			was = a.fullState(ctx)
		}
		releasing, _ := a.feed.find(func(e labmode.Event) bool { return e.Request == held.id && e.Point == sale.Releasing })
		if e, ok := a.feed.find(func(e labmode.Event) bool {
			return e.Point == sale.Read && e.Request != held.id && e.Time.After(releasing.Time)
		}); ok {
			return Seen{How: Entered, Request: e.Request}, true
		}
		return Seen{How: KeptOut}, p.waitsInMySQL(ctx, was)
	})
}

// committing is the sale that is held before its commit, nil before there is one.
func (p *play) committing() *Customer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.committer
}

// lastUnit makes certain that the last unit is sold twice where nothing prevents it and chance would decide.
// A sum loses no sale, so it is wrong only for sales that read it before its last units were sold, and go by it
// after. One is sent when few units are left: it is held at its read until another one is sold out. It is
// safe for concurrent use.
type lastUnit struct {
	attack *attack
	few    int64         // so many
	sent   atomic.Bool   // somebody sends that sale
	at     chan struct{} // closed when it is held, or over
	here   func()        // closes at
	letGo  func()
}

// newLastUnit returns nil where nothing is held.
func newLastUnit(a *attack) *lastUnit {
	of := a.Of.Under(a.o.Circumstances)
	if !of.State.Sum || of.Properties.Has.Includes(declared.Exclusive) || len(a.traces) == 0 {
		return nil
	}
	l := &lastUnit{attack: a, few: int64(4 * a.o.Workers), at: make(chan struct{})} // what is under way may buy some of them before it reads
	if a.Scenario.Crowd.Kill && l.due() && len(a.Shops) == 1 {
		return nil // its shop is the one that is killed
	}
	l.letGo = sync.OnceFunc(func() { a.background.Go(l.release) })
	l.here = sync.OnceFunc(func() {
		close(l.at)
		if a.progress.now().soldOut > 0 {
			l.letGo()
		}
	})
	context.AfterFunc(a.ctx, l.release)
	a.customers.notFirst = 0
	return l
}

// due reports whether few units are left.
func (l *lastUnit) due() bool { return l.attack.o.Stock-l.attack.progress.now().sold <= l.few }

// release lets that sale go on, unless it has an answer.
func (l *lastUnit) release() {
	if h := l.attack.customers.late(); h != nil && !h.Answered() {
		l.attack.play.release(context.WithoutCancel(l.attack.ctx), h)
	}
}

// wait has that sale be sent when it is due, and the others wait until it has read.
func (l *lastUnit) wait(ctx context.Context) {
	if l == nil || !l.due() {
		return
	}
	if l.sent.CompareAndSwap(false, true) {
		l.attack.customers.sendLate()
		return
	}
	select {
	case <-l.at:
	case <-ctx.Done():
	}
}

// answered is called with each answer.
func (l *lastUnit) answered(h *Customer) {
	switch {
	case l == nil:
	case h.late:
		l.here()
	case h.Outcome == load.SoldOut:
		select {
		case <-l.at:
			l.letGo()
		default: // it is not held yet
		}
	}
}

// aroundView makes a page view before the first sale, and holds it where it has read the row. Sales are made
// one at a time until one has written the row and renewed the copy. When none is under way, the page view goes
// on and stores its own copy. So nobody else can renew that before the next sale reads it.
func (p *play) aroundView(ctx context.Context) {
	a := p.attack
	ctx, cancel := context.WithTimeout(ctx, playPatience)
	defer cancel()
	shop := len(a.Shops) - 1 // the first sale goes to the first shop
	order := load.Order{
		Shop: a.Shops[shop].URL, ItemID: a.item.ItemID, RequestID: a.customers.prefix + "-view", Strategy: a.Of.Name, Run: a.item.ID,
		Fault: labmode.Fault{Point: p.At, Action: labmode.Hold, For: holdAtMost},
	}
	p.view = explain.Request{ID: order.RequestID, Shop: explain.ShopName(shop), Sent: time.Now()}
	shown := make(chan struct{})
	a.background.Go(func() {
		defer close(shown)
		a.problems.add(load.View(a.ctx, order))
		p.view.Answered = time.Now()
	})
	var read time.Time
	held := p.await(ctx, ReachedPoint, func() (Seen, bool) {
		e, ok := p.viewPassed(p.At)
		read = e.Time
		return Seen{Request: order.RequestID}, ok
	})
	if !held {
		<-shown
		return
	}
	a.customers.takeTurns()
	overtaken := p.await(ctx, Overtaken, func() (Seen, bool) {
		e, sold := a.feed.find(func(e labmode.Event) bool {
			h := a.customers.byID(e.Request)
			return e.Point == sale.Written && e.Time.After(read) && h != nil && h.Got() == load.Sold
		})
		return Seen{Request: e.Request}, sold
	})
	a.customers.rest(ctx)
	a.problems.add(load.Release(context.WithoutCancel(ctx), order.Shop, order.RequestID))
	<-shown
	if overtaken {
		p.await(ctx, CopyStored, func() (Seen, bool) {
			_, ok := p.viewPassed(sale.Stored)
			return Seen{Request: order.RequestID}, ok
		})
	}
}

func (p *play) viewPassed(point sale.Point) (labmode.Event, bool) {
	return p.attack.feed.find(func(e labmode.Event) bool { return e.Request == p.view.ID && e.Point == point })
}
