package step

import (
	"context"

	"stocklock/internal/lab/schedule"
)

// outcome is what the customers were answered, before anything is counted.
func (r *run) outcome() schedule.Outcome {
	o := schedule.Outcome{Stock: r.units, Answers: map[string]string{}}
	for _, b := range r.buyers {
		o.Answers[b.customer.String()] = b.answer
	}
	return o
}

// lookAtEnd looks at both servers, and puts the orders into the outcome.
func (r *run) lookAtEnd(ctx context.Context, o *schedule.Outcome) (schedule.State, error) {
	if err := r.look(ctx, 0, ""); err != nil {
		return schedule.State{}, err
	}
	end, err := r.count(ctx)
	o.Orders = end.Orders
	return end, err
}

// record is what the run has shown.
func (r *run) record(o schedule.Outcome) schedule.Record {
	return schedule.Record{
		Strategy: r.plan.Strategy, Customers: len(r.buyers), LeaseMS: r.lease.Milliseconds(),
		Entries: r.entries, Outcome: o, Played: r.chosen, Holds: r.holds, Struck: r.struck, Behind: r.behind, Leaves: r.leaves,
	}
}

// concluded rules on a run. Keeps says that something else than a lock in Redis can have kept others out.
func concluded(record schedule.Record, end schedule.State, keeps bool) schedule.Record {
	record.Decide()
	record.Conclude(end, keeps)
	return record
}
