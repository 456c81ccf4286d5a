package stage

import (
	"context"
	"fmt"

	"stocklock/internal/lab/schedule"
)

// conclude waits for what is still to come, has one ordinary customer buy what is left, and says
// how the run ended.
func (r *run) conclude(ctx context.Context) (schedule.Record, error) {
	o := schedule.Outcome{Stock: int64(len(r.buyers) - 1), Answers: map[string]string{}}
	for _, b := range r.buyers {
		o.Answers[b.customer.String()] = b.answer
		if b.cut {
			b.shop.Reconnect()
		}
	}
	end, err := r.lookAtEnd(ctx, &o)
	if err != nil {
		return schedule.Record{}, err
	}
	note := "all have ended"
	// Time and another customer can change only what is not sold yet.
	if int64(len(o.Orders)) < o.Stock || o.Lies() > 0 {
		if err := r.stage.sleep(ctx, 2*r.stage.oneLease()); err != nil {
			return schedule.Record{}, err
		}
		if err := r.slot.restarted(ctx); err != nil {
			return schedule.Record{}, err
		}
		o.Ordinary = r.stage.buy(ctx, r.buyers[len(r.buyers)-1].shop.URL, r.item, r.plan.Strategy, r.buyers[0].id+"-ordinary")
		if end, err = r.lookAtEnd(ctx, &o); err != nil {
			return schedule.Record{}, err
		}
		note = fmt.Sprintf("two leases have passed, and an ordinary customer was answered with %s", o.Ordinary)
	}
	if r.plan.Observe {
		r.entries[r.note(schedule.Entry{Note: note})].State = &end
	}
	record := schedule.Record{
		Strategy: r.plan.Strategy, Schedule: r.chosen[:r.listed], Customers: len(r.buyers), LeaseMS: r.stage.lease.Milliseconds(),
		Entries: r.entries, Outcome: o, Played: r.chosen, Holds: r.holds,
	}
	record.Decide()
	record.Conclude(end, r.of.State)
	return record, nil
}

// lookAtEnd looks at both servers, and puts the orders into the outcome.
func (r *run) lookAtEnd(ctx context.Context, o *schedule.Outcome) (schedule.State, error) {
	if err := r.look(ctx, 0, ""); err != nil {
		return schedule.State{}, err
	}
	end, err := r.servers(ctx)
	o.Orders = end.Orders
	return end, err
}
