package step

import (
	"context"
	"slices"
	"time"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/seen"
	"stocklock/internal/lab/words"
)

// How long others come in the place of a customer whose sale failed after an event: at most so many, for a lease
// and so long, with growing times between them.
const (
	maxOthers   = 10
	othersLimit = 5 * time.Second
	firstOther  = 20 * time.Millisecond
	lastOther   = time.Second
)

// othersMayCome says whether the time for that is not over.
func (r *serviceRun) othersMayCome(came int, since time.Time) bool {
	return came < maxOthers && time.Since(since) < r.service.lease+othersLimit
}

// anotherComes has another customer come in the place of each one whom an event has not taken away, and whose sale
// failed after it. The same one never comes again: a service could rightly count two purchases.
func (r *serviceRun) anotherComes(ctx context.Context) (came bool, err error) {
	if !r.plan.Everything || r.used == 0 {
		return false, nil
	}
	for i, b := range r.customers {
		if b.state != ended || !schedule.Failed(b.answer) || slices.Contains(r.takenAway, b.customer) || r.service.dirty[i] || !r.othersMayCome(b.others, r.eventAt) {
			continue
		}
		if err := seen.Pause(ctx, min(firstOther<<b.others, lastOther)); err != nil {
			return false, err
		}
		r.note(schedule.Entry{Note: words.Of("note.another", "who", b.customer.String(), "answer", b.answer)})
		b.others++
		b.sale = r.service.on.NewSale(r.item)
		r.come(ctx, b.buyer)
		came = true
	}
	return came, nil
}

// ordinary has another customer buy when all have ended, and returns how that was answered. Where the sale fails,
// the next one comes: connections to a server that was broken may be open still. So it is while it is busy, where a lease
// may end yet that cannot be ended.
func (r *serviceRun) ordinary(ctx context.Context, unended bool) string {
	last, began := len(r.customers)-1, time.Now()
	for came := 1; ; came++ {
		reply := r.service.on.Buy(ctx, r.customers[last].at, r.service.on.NewSale(r.item))
		answer, early := reply.String(), r.isBusy(last)
		if !schedule.Failed(answer) && !(unended && reply.Outcome == load.Busy) || r.used == 0 || !r.othersMayCome(came, began) || seen.Pause(ctx, min(firstOther<<came, lastOther)) != nil {
			r.late = !r.comesToRest(ctx, last, reply.Outcome, early)
			return answer
		}
	}
}
