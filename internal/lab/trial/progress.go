package trial

import (
	"context"
	"sync"
	"time"

	"stocklock/internal/lab/load"
)

// progress says whether something still moves: what is sold, and which faults are under way. It is
// safe for concurrent use.
type progress struct {
	mu          sync.Mutex // guards the rest
	last        time.Time  // of the last sale, or of the last end of a fault
	sold        int64      // units answered as sold
	soldOut     int        // requests of one unit answered as sold out
	pending     int        // requests with a fault that have no answer yet
	restarting  int        // shops that are dead and being started
	reached     int        // faults whose point was reached
	intervening int        // interventions that are being made
}

func (p *progress) start(now time.Time) { p.last = now }

func (p *progress) sales() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sold
}

func (p *progress) soldOutSeen() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.soldOut > 0
}

func (p *progress) faultSent() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending++
}

func (p *progress) faultReached() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reached++
}

func (p *progress) answered(h *hit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch h.Outcome {
	case load.Sold:
		if !h.replayed {
			p.sold += int64(h.wish.quantity)
			p.last = time.Now()
		}
	case load.SoldOut:
		if h.wish.quantity == 1 { // more may be more than are left
			p.soldOut++
		}
	}
	if h.injection.HasFault() {
		p.pending--
		p.last = time.Now()
	}
}

// intervene notes that the testbed is changed until over is called.
func (p *progress) intervene() (over func()) { return p.during(&p.intervening) }

// restart notes that a shop is dead until over is called.
func (p *progress) restart() (over func()) { return p.during(&p.restarting) }

func (p *progress) during(count *int) (over func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*count++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		*count--
		p.last = time.Now()
	}
}

// finished reports whether all faults are over and more than this many requests found nothing left.
func (p *progress) finished(soldOut int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pending == 0 && p.restarting == 0 && p.soldOut > soldOut
}

// standsStill reports whether nothing was sold for longer than patience, with stock left and no
// fault under way.
func (p *progress) standsStill(stock int64, patience time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	underWay := p.pending > 0 || p.restarting > 0 || p.intervening > 0
	return p.sold < stock && p.soldOut == 0 && !underWay && time.Since(p.last) > patience
}

// movedWithin reports whether something was sold, or a fault ended, within a time before now.
func (p *progress) movedWithin(d time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.last) <= d
}

// over reports whether there is nothing more to learn. A fixed load ends when all requests are
// sent, the others when the faults are over and all is sold. Either ends when nothing is sold any
// more.
func (a *attack) over(ctx context.Context, sent int) bool {
	switch {
	case a.cell.Scenario.FixedLoad && sent >= a.o.Requests:
		return true
	case a.progress.standsStill(a.o.Stock, a.patience()):
		a.stuck = a.lookAtStandstill(ctx)
		return true
	default:
		return !a.cell.Scenario.FixedLoad && a.progress.finished(2*a.o.Workers)
	}
}

// patience is how long nothing may be sold before that counts as stuck: three leases, and not less
// than one sale may take on a busy machine.
func (a *attack) patience() time.Duration { return max(3*a.o.Lease, 1500*time.Millisecond) }
