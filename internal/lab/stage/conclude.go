package stage

import (
	"context"
	"fmt"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/strategy/declared"
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
	if err := r.slot.database.catchUp(ctx); err != nil {
		return schedule.Record{}, err
	}
	if r.plan.Baskets {
		return r.concludeBaskets(ctx, o)
	}
	note := "all have ended"
	// Time and another customer can change only what is not sold yet, and time only what somebody holds.
	if int64(len(o.Orders)) < o.Stock || o.Lies() > 0 {
		free := !r.lock.Locked() && !r.timed && !r.keepsElsewhere() && !r.of.AtPoints() && !r.of.AnswersFirst && len(r.of.State.Locks) == 0
		if free && o.Lies() == 0 {
			note = "nothing is held"
		} else if err := r.stage.sleep(ctx, 2*r.slot.oneLease()); err != nil {
			return schedule.Record{}, err
		} else {
			note = "two leases have passed"
		}
		if err := r.slot.restarted(ctx); err != nil {
			return schedule.Record{}, err
		}
		o.Ordinary = r.slot.buy(ctx, r.buyers[len(r.buyers)-1].shop.URL, r.items, r.plan.Strategy, r.buyers[0].id+"-ordinary")
		if end, err = r.lookAtEnd(ctx, &o); err != nil {
			return schedule.Record{}, err
		}
		note += ", and an ordinary customer was answered with " + o.Ordinary
	}
	if r.plan.Observe {
		r.entries[r.note(schedule.Entry{Note: note})].State = &end
	}
	return r.record(o, end), nil
}

// concludeBaskets has ordinary customers buy both items until one is refused, when two leases have passed or
// nothing is held.
func (r *run) concludeBaskets(ctx context.Context, o schedule.Outcome) (schedule.Record, error) {
	o.Items = len(r.items)
	o.Stock = int64(len(r.buyers))
	if r.lock.Locked() {
		if err := r.stage.sleep(ctx, 2*r.slot.oneLease()); err != nil {
			return schedule.Record{}, err
		}
	}
	if err := r.slot.restarted(ctx); err != nil {
		return schedule.Record{}, err
	}
	for {
		o.Ordinary = r.slot.buy(ctx, r.buyers[len(r.buyers)-1].shop.URL, r.items, r.plan.Strategy, fmt.Sprintf("%s-ordinary-%d", r.buyers[0].id, o.Afterwards))
		if o.Ordinary != string(load.Sold) || o.Afterwards > 2*o.Stock {
			break
		}
		o.Afterwards++
	}
	end, err := r.lookAtEnd(ctx, &o)
	if err != nil {
		return schedule.Record{}, err
	}
	if r.plan.Observe {
		note := fmt.Sprintf("%d ordinary customers bought, and the next one was answered with %s", o.Afterwards, o.Ordinary)
		r.entries[r.note(schedule.Entry{Note: note})].State = &end
	}
	return r.record(o, end), nil
}

// record is what the run has shown.
func (r *run) record(o schedule.Outcome, end schedule.State) schedule.Record {
	record := schedule.Record{
		Strategy: r.plan.Strategy, Schedule: r.chosen[:r.listed], Customers: len(r.buyers), LeaseMS: r.slot.lease.Milliseconds(),
		Entries: r.entries, Outcome: o, Played: r.chosen, Holds: r.holds,
	}
	record.Decide()
	record.Conclude(end, r.timed || r.keepsElsewhere())
	return record
}

// keepsElsewhere says whether the strategy declares that something else than a lock in Redis keeps others
// out.
func (r *run) keepsElsewhere() bool {
	return len(r.of.State.Keys) > 0 || r.of.State.Scattered() || r.of.Lease.Kept == declared.LeaseInMySQL
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
