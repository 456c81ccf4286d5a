package wirestage

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/wire"
)

// conclude has an ordinary customer come where a unit is left, and rules.
func (r *run) conclude(ctx context.Context) (schedule.Record, error) {
	o := schedule.Outcome{Stock: r.units, Answers: map[string]string{}}
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
	record := schedule.Record{
		Strategy: r.plan.Strategy, Schedule: r.chosen[:r.listed], Customers: len(r.buyers), Outcome: o, Played: r.chosen, Wire: true,
		Struck: r.struck, Behind: r.behind, Leaves: r.leaves,
	}
	if int64(len(o.Orders)) < o.Stock || o.Lies() > 0 || record.NeedsAnother() {
		if end, err = r.afterwards(ctx, &record.Outcome); err != nil {
			return schedule.Record{}, err
		}
	}
	for _, b := range r.buyers {
		if b.reply.Outcome == load.Failed && b.reply.Status < 500 {
			return schedule.Record{}, fmt.Errorf("%s was answered with %s, which the description does not know", b.customer, b.reply)
		}
	}
	r.whatWasRead(record.Outcome.Orders)
	record.Entries, record.Holds = r.entries, r.holds
	record.Decide()
	record.Conclude(end, r.other)
	return record, nil
}

// afterwards has another customer come when what is held has ended, and counts again.
func (r *run) afterwards(ctx context.Context, o *schedule.Outcome) (end schedule.State, err error) {
	note := "nothing is held"
	if r.lock.Locked() {
		if note, err = r.outlast(ctx); err != nil {
			return end, err
		}
	}
	r.stage.on.Watch(nil)
	if err := r.stage.revive(ctx); err != nil {
		return end, err
	}
	for until := time.Now().Add(workerLimit); r.stage.probe.AfterAnswer && o.Lies() > 0 && time.Now().Before(until); {
		if err = pause(ctx, workerEvery); err == nil {
			end, err = r.servers(ctx)
		}
		if err != nil {
			return end, err
		}
		o.Orders = end.Orders
	}
	o.Ordinary = r.ordinary(ctx)
	if err := r.look(ctx, 0, "", ""); err != nil {
		return end, err
	}
	end, err = r.servers(ctx)
	o.Orders = end.Orders
	r.note(schedule.Entry{Note: note + ", and an ordinary customer was answered with " + o.Ordinary})
	return end, err
}

// How long an order is awaited of a customer who was answered as sold: a worker of another process, or of one that was
// started again, can write it.
const (
	workerLimit = 10 * time.Second
	workerEvery = 100 * time.Millisecond
)

// whatWasRead puts into orders what was in stock when their customers found some for the last time: by that they have
// decided. Two orders by one stock have the same cause.
func (r *run) whatWasRead(orders []schedule.Order) {
	for i := range orders {
		for _, e := range slices.Backward(r.entries) {
			if e.Customer == orders[i].Customer && e.Server == wire.MySQL && strings.HasPrefix(e.Sent, "SELECT") && e.State != nil && e.State.Stock > 0 {
				orders[i].Read, orders[i].Written = e.State.Stock, e.State.Stock-1
				break
			}
		}
	}
}
