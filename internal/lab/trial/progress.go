package trial

import (
	"context"
	"errors"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// downFor is how long a shop that refused a connection is left alone.
const downFor = 50 * time.Millisecond

// pacer sends in the given shape, or as fast as workers are free, until the attack is over.
type pacer struct {
	shape Shape
	over  func(hits int) bool
}

func (p pacer) Pace(elapsed time.Duration, hits uint64) (wait time.Duration, stop bool) {
	if p.over(int(hits)) {
		return 0, true
	}
	if p.shape.IsZero() {
		return 0, false
	}
	return max(p.shape.Due(int(hits))-elapsed, 0), false
}

// Rate is what vegeta's reports want of a pacer, and nothing here uses.
func (p pacer) Rate(time.Duration) float64 { return 0 }

func (a *attack) pacer(ctx context.Context) vegeta.Pacer {
	return pacer{
		shape: a.o.Shape,
		over:  func(hits int) bool { return ctx.Err() != nil || a.over(ctx, hits) },
	}
}

// over says whether there is nothing more to learn: under contention, when all
// requests are sent; otherwise when the faults have struck and all is sold. And in
// any case when nothing moves any more.
func (a *attack) over(ctx context.Context, hits int) bool {
	a.mu.Lock()
	if a.cell.Scenario.FixedLoad && hits >= a.o.Requests {
		a.mu.Unlock()
		return true
	}
	done := !a.cell.Scenario.FixedLoad && a.pending == 0 && a.reviving == 0 && a.soldOut > 2*a.o.Workers
	quietFor := time.Since(a.progress)
	nothingMoves := a.sold < a.o.Stock && a.soldOut == 0 && a.pending == 0 && a.reviving == 0 && a.striking == 0 && quietFor > a.patience()
	a.mu.Unlock()
	if nothingMoves {
		locks, err := a.lookAtLocks(ctx)
		a.mu.Lock()
		a.stuck, a.locks, a.waiting = true, locks, describe(locks)
		if err != nil {
			a.waiting = err.Error()
		}
		a.mu.Unlock()
	}
	return done || nothingMoves
}

// patience is how long nothing may sell before that counts as stuck: three leases,
// and not less than a busy machine may need for one sale.
func (a *attack) patience() time.Duration { return max(3*a.o.Lease, 1500*time.Millisecond) }

// answered takes note of one answer, or of the lack of one.
func (a *attack) answered(ctx context.Context, answer *vegeta.Result) {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := a.bySeq[answer.Seq]
	if h == nil {
		if ctx.Err() == nil {
			a.problems = append(a.problems, errors.New("a request could not be made: "+answer.Error))
		}
		return
	}
	h.latency, h.status = answer.Latency, int(answer.Code)
	if h.err == nil && answer.Code == 0 {
		h.err = errors.New(answer.Error)
	}
	h.outcome = classify(h.status, answer.Body, h.err)
	now := time.Now()
	switch h.outcome {
	case Sold:
		a.sold++
		a.progress = now
	case SoldOut:
		a.soldOut++
		a.usage.stop(a.sold)
	case Refused:
		a.shops[h.shop].down = now.Add(downFor)
	case Failed:
		h.body = string(answer.Body)
	}
	if h.injection.HasFault() {
		a.pending--
		a.progress = now
		a.relieve(ctx, h)
	}
	if h.injection.Alone {
		a.shops[h.shop].alone--
	}
}

func (a *attack) unknown() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, h := range a.hits {
		if h.outcome == Unknown || h.outcome == "" {
			n++
		}
	}
	return n
}
