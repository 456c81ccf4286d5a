package schedule

import (
	"context"
	"fmt"
	"slices"

	"stocklock/internal/lab/load"
)

// conclude waits for what is still to come, has one ordinary customer buy what is left, and says
// how the run ended.
func (r *run) conclude(ctx context.Context) (Record, error) {
	for _, p := range r.people {
		if p.cut {
			p.shop.Reconnect()
		}
	}
	if err := r.look(ctx, 0, ""); err != nil {
		return Record{}, err
	}
	rows, err := r.rows(ctx)
	if err != nil {
		return Record{}, err
	}
	o := Outcome{Stock: int64(len(r.people) - 1), Answers: map[string]string{}}
	// Time and another customer can change only what is not sold yet.
	if int64(len(rows.Orders)) < o.Stock || r.unproven(rows) > 0 {
		if err := r.stage.sleep(ctx, 2*r.stage.oneLease()); err != nil {
			return Record{}, err
		}
		if err := r.lane.restarted(ctx); err != nil {
			return Record{}, err
		}
		o.Ordinary = r.stage.buy(ctx, r.people[len(r.people)-1].shop.URL, r.item, r.plan.Strategy, r.people[0].id+"-ordinary")
		if err := r.look(ctx, 0, ""); err != nil {
			return Record{}, err
		}
		if rows, err = r.rows(ctx); err != nil {
			return Record{}, err
		}
	}
	o.Orders = rows.Orders
	for _, p := range r.people {
		o.Answers[p.customer.String()] = p.answer
	}
	units := o.Stock - int64(len(rows.Orders))
	switch lies := r.unproven(rows); {
	case units < 0:
		o.Verdict, o.N = Oversold, -units
	case lies > 0:
		o.Verdict, o.N = Lied, lies
	case units > 0 && o.Ordinary == string(load.SoldOut):
		o.Verdict, o.N = Left, units
	case units > 0 && o.Ordinary != string(load.Sold):
		o.Verdict = Stuck
	default:
		o.Verdict = Held
	}
	o.Cause = r.causeOf(o)
	if r.plan.Observe {
		rows.Lock, rows.TTLMS, rows.Kept = r.lock.value, r.lock.ttl, r.lock.kept
		note := "all have ended"
		if o.Ordinary != "" {
			note = fmt.Sprintf("two leases have passed, and an ordinary customer was answered with %s", o.Ordinary)
		}
		r.entries[r.note(Entry{Note: note})].State = &rows
	}
	return Record{
		Strategy: r.plan.Strategy, Customers: len(r.people), LeaseMS: r.stage.lease.Milliseconds(), Entries: r.entries, Outcome: o,
		Schedule: r.chosen[:r.listed], Listed: r.chosen[:r.listed].String(),
		chosen: r.chosen, switches: r.switches, tenures: r.tenures, spoiled: r.spoiled,
	}, nil
}

func (r *run) rows(ctx context.Context) (State, error) {
	return lookAtRow(ctx, r.stage.store.Pool(), r.item, r.of.State, r.customerOf)
}

// unproven counts the customers who were told sold and have no order.
func (r *run) unproven(rows State) int64 {
	var lies int64
	for _, p := range r.people {
		if p.answer == string(load.Sold) && !slices.ContainsFunc(rows.Orders, func(o Order) bool { return o.Customer == p.customer.String() }) {
			lies++
		}
	}
	return lies
}
