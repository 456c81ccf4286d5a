package wirestage

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/wire"
)

// conclude has an ordinary customer come where a unit is left, and rules.
func (r *run) conclude(ctx context.Context) (schedule.Record, error) {
	o := schedule.Outcome{Stock: int64(len(r.buyers) - 1), Answers: map[string]string{}}
	for _, b := range r.buyers {
		o.Answers[b.customer.String()] = b.reply.String()
	}
	if err := r.look(ctx, 0, "", ""); err != nil {
		return schedule.Record{}, err
	}
	end, err := r.servers(ctx)
	if err != nil {
		return schedule.Record{}, err
	}
	o.Orders = end.Orders
	if int64(len(o.Orders)) < o.Stock || o.Lies() > 0 {
		note := "nothing is held"
		if r.lock.Locked() {
			if note, err = r.outlast(ctx); err != nil {
				return schedule.Record{}, err
			}
		}
		r.stage.on.Watch(nil)
		if err := r.stage.revive(ctx); err != nil {
			return schedule.Record{}, err
		}
		o.Ordinary = r.ordinary(ctx)
		if err := r.look(ctx, 0, "", ""); err != nil {
			return schedule.Record{}, err
		}
		if end, err = r.servers(ctx); err != nil {
			return schedule.Record{}, err
		}
		o.Orders = end.Orders
		r.note(schedule.Entry{Note: note + ", and an ordinary customer was answered with " + o.Ordinary})
	}
	for _, b := range r.buyers {
		if b.reply.Outcome == load.Failed && b.reply.Status < 500 {
			return schedule.Record{}, fmt.Errorf("%s was answered with %s, which the description does not know", b.customer, b.reply)
		}
	}
	r.whatWasRead(o.Orders)
	record := schedule.Record{
		Strategy: r.plan.Strategy, Schedule: r.chosen[:r.listed], Customers: len(r.buyers), Entries: r.entries, Outcome: o, Played: r.chosen, Holds: r.holds, Wire: true,
	}
	record.Decide()
	record.Conclude(end, false)
	return record, nil
}

// ordinary has one more customer buy, and returns how it was answered. In a process that lost its connections
// one that fails comes again.
func (r *run) ordinary(ctx context.Context) string {
	last := len(r.buyers) - 1
	for try := 1; ; try++ {
		reply := r.stage.on.Buy(ctx, r.buyers[last].process, r.stage.on.NewSale(r.item, fmt.Sprintf("item%d-ordinary", r.item)))
		if try == warmings || !r.stage.cold[last] || reply.Outcome != load.Failed && reply.Outcome != load.Unknown {
			return reply.String()
		}
	}
}

// whatWasRead puts into orders what was in stock when their customers read last, as far as that was looked at. Two
// orders by one stock have the same cause.
func (r *run) whatWasRead(orders []schedule.Order) {
	for i := range orders {
		for _, e := range slices.Backward(r.entries) {
			if e.Customer == orders[i].Customer && e.Server == wire.MySQL && strings.HasPrefix(e.Sent, "SELECT") && e.State != nil {
				orders[i].Read, orders[i].Written = e.State.Stock, e.State.Stock-1
				break
			}
		}
	}
}
