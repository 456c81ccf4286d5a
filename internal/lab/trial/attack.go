package trial

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/shop/labmode"
)

// attack is the load on one cell, and what the scenario does meanwhile. Once run has returned,
// nothing changes any more.
type attack struct {
	bench Bench
	cell  Cell
	o     Options
	plan  scenario.Plan
	item  audit.Run

	begun, ended time.Time
	customers    *customers  // the requests, and the shops that they go to
	progress     progress    // what is sold, and which faults are under way
	record       record      // what was done to the testbed, and what Redis announced
	machine      stallWatch  // how long the machine let nothing happen
	problems     problems    // what the harness did wrong
	stuck        *standstill // nil while something is sold; set by the goroutine that paces the load
	outOfTime    bool        // it was ended while it still sold
	usage        *usage
	traces       []traceFile
	looks        atomic.Int64 // statements to MySQL that serve only to watch
	returns      *returns
	restocks     []units // that came after the attack

	background sync.WaitGroup // watches, interventions and restarts
}

// problems are failures of the harness. It is safe for concurrent use.
type problems struct {
	mu   sync.Mutex
	errs []error
}

func (p *problems) add(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errs = append(p.errs, err)
}

func newAttack(b Bench, c Cell, o Options, plan scenario.Plan, item audit.Run) *attack {
	a := &attack{bench: b, cell: c, o: o, plan: plan, item: item, usage: &usage{}, customers: newCustomers(len(b.Shops), newWishes(c, item))}
	a.record.watch = o.Watch
	return a
}

// run attacks until there is nothing more to learn. An error means that the harness failed.
func (a *attack) run(ctx context.Context) error {
	if a.plan.Prepare != nil {
		if err := a.plan.Prepare(ctx, a.bench.Testbed); err != nil {
			return fmt.Errorf("prepare: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, a.longest())
	defer a.background.Wait()
	defer cancel()
	a.markTraces()
	if err := a.watchLocks(ctx); err != nil {
		return err
	}
	a.restartTheDead(ctx)
	a.returns = newReturns(ctx, a)
	a.background.Go(func() { a.machine.watch(ctx) })
	a.usage = a.startUsage(ctx)
	a.begun = time.Now()
	a.progress.start(a.begun)
	watching, unwatch := context.WithCancel(ctx)
	defer unwatch()
	a.startWatch(watching)
	if a.plan.Intervene == nil && a.plan.Intervention != "" {
		defer a.record.intervention(a.plan.Intervention, 0)() // Prepare is done to the first shop, and lasts
	}
	orders := load.Load{Shape: a.o.Shape, Workers: a.o.Workers, Timeout: a.o.Timeout,
		Over: func(sent int) bool { return a.over(ctx, sent) }}
	if err := orders.Run(ctx, func() (load.Order, bool) { return a.next(ctx), true }, a.answered); err != nil {
		a.problems.add(err)
	}
	a.ended = time.Now()
	a.usage.stop(a.progress.sales())
	unwatch()
	a.oneByOne(ctx)
	switch {
	case !errors.Is(ctx.Err(), context.DeadlineExceeded):
	case a.progress.movedWithin(a.patience()):
		a.outOfTime = true
	default:
		a.problems.add(fmt.Errorf("neither sold out nor stuck after %s", a.longest()))
	}
	a.problems.mu.Lock()
	defer a.problems.mu.Unlock()
	return errors.Join(a.problems.errs...)
}

// longest bounds an attack that neither sells out nor gets stuck.
func (a *attack) longest() time.Duration { return maxCell + a.o.Shape.Due(a.o.Requests) }

// next makes the next order.
func (a *attack) next(ctx context.Context) load.Order {
	h := a.customers.next(a.plan.Inject, !a.progress.soldOutSeen())
	h.id = a.request(h)
	h.scheduled = time.Now()
	if !a.o.Shape.IsZero() {
		h.scheduled = a.begun.Add(a.o.Shape.Due(h.number))
	}
	a.see(h.asked())
	if h.injection.HasFault() {
		a.progress.faultSent()
		a.await(ctx, h)
	}
	return a.order(h)
}

// request is the id of a request.
func (a *attack) request(h *hit) string { return fmt.Sprintf("%d-%d", a.item.ItemID, h.number) }

// order is the request as it is sent.
func (a *attack) order(h *hit) load.Order {
	return load.Order{
		Shop: a.bench.Shops[h.shop].URL, ItemID: a.item.ItemID, Quantity: h.wish.quantity, RequestID: h.id, IdempotencyKey: h.wish.key,
		Strategy: a.cell.Strategy.Name, Run: a.item.ID, Fault: h.fault(), Nested: h.injection.Nested, Tag: h,
	}
}

// answered notes one answer, or the lack of one.
func (a *attack) answered(answer load.Answer) {
	h := answer.Order.Tag.(*hit)
	a.customers.answered(h, answer)
	a.progress.answered(h)
	a.see(h.request())
	if h.Outcome == load.SoldOut {
		a.usage.stop(a.progress.sales())
	}
	close(h.done)
	a.returns.watch(h)
}

// fault is what the shop is asked to do. Additional work is a short sleep.
func (h *hit) fault() labmode.Fault {
	if h.injection.Work > 0 {
		return labmode.Fault{Point: workPoint, Action: labmode.Sleep, For: h.injection.Work}
	}
	return h.injection.Fault
}
