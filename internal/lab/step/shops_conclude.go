package step

import (
	"context"
	"fmt"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/words"
)

// count is what MySQL has now, and what Redis had at the last look.
func (r *shopsRun) count(ctx context.Context) (schedule.State, error) {
	now := r.lock
	if r.owner != 0 {
		now.Holder = r.owner.String()
	}
	store := r.slot.database.store
	if r.of.State.Remaining != "" {
		if err := store.Pool().QueryRowContext(ctx, r.of.State.Remaining, r.items[0]).Scan(&now.Elsewhere); err != nil {
			return now, fmt.Errorf("look at the strategy's own rows: %w", err)
		}
	}
	for i, id := range r.items {
		item, err := store.Read(ctx, id)
		if err != nil {
			return now, err
		}
		orders, err := store.ItemOrders(ctx, id)
		if err != nil {
			return now, err
		}
		nth := 0
		if len(r.items) > 1 {
			nth = i + 1
			now.Stocks = append(now.Stocks, item.Stock)
		}
		if i == 0 {
			now.Stock, now.Fence = item.Stock, item.Fence
		}
		for _, o := range orders {
			if o.CancelledAt == nil { // it stands
				now.Orders = append(now.Orders, schedule.Order{ID: o.ID, Customer: r.customerOf(o.RequestID), Item: nth, Read: o.StockRead, Written: o.StockWritten})
			}
		}
	}
	if replica := r.slot.database.replica; replica != nil && r.chosen.Has(schedule.Lag) {
		item, err := replica.Read(ctx, r.items[0])
		if err != nil {
			return now, err
		}
		now.Replica = &item.Stock
	}
	if r.of.State.Whole {
		now.Stock, now.Elsewhere = now.Stock+now.Elsewhere, 0
	}
	if len(r.items) > 1 {
		possession := schedule.Possession{Items: len(r.items)}
		for _, e := range r.entries {
			possession.After(e)
		}
		possession.Put(&now)
	}
	return now, nil
}

// conclude waits for what is still to come, has one ordinary customer buy what is left, and says
// how the run ended.
func (r *shopsRun) conclude(ctx context.Context) (schedule.Record, error) {
	for _, s := range r.customers {
		if s.cut {
			s.shop.Reconnect()
		}
	}
	o := r.outcome()
	end, err := r.lookAtEnd(ctx, &o)
	if err == nil {
		err = r.slot.database.catchUp(ctx)
	}
	if err != nil {
		return schedule.Record{}, err
	}
	note := words.Of("note.ended")
	switch {
	case r.plan.Reservations:
		o.Reserved, err = r.paid(ctx)
	// Neither time nor another customer can change what is sold. Where an update was lost, the row has a unit to sell still.
	case r.plan.Baskets || int64(len(o.Orders)) < o.Stock || o.Lies() > 0 || end.Stock > 0:
		end, note, err = r.othersBuy(ctx, &o)
	}
	if err != nil {
		return schedule.Record{}, err
	}
	if r.plan.Observe {
		r.entries[r.note(schedule.Entry{Note: note})].State = &end
	}
	record := r.record(o)
	record.Decide()
	record.Conclude(end, r.timed || r.keepsElsewhere())
	return record, nil
}

// othersBuy has an ordinary customer buy, when two leases have passed or nothing is held. With baskets, others come until
// one is refused.
func (r *shopsRun) othersBuy(ctx context.Context, o *schedule.Outcome) (end schedule.State, note words.Text, err error) {
	held := r.lock.Locked()
	if r.plan.Baskets {
		o.Items = len(r.items)
	} else {
		held = held || r.timed || r.keepsElsewhere() || r.unseen || r.of.AnswersFirst || len(r.of.State.Locks) > 0 || o.Lies() > 0
	}
	note = words.Of("note.free")
	if held {
		note, err = words.Of("note.two-leases"), r.shops.sleep(ctx, 2*r.slot.oneLease())
	}
	if err == nil {
		err = r.slot.restarted(ctx)
	}
	if err != nil {
		return end, note, err
	}
	last := r.customers[len(r.customers)-1].shop.URL
	buying, cancel := ctx, context.CancelFunc(func() {})
	if r.plan.MaxSilence > 0 {
		buying, cancel = context.WithTimeoutCause(ctx, r.slot.wait+r.plan.MaxSilence, ErrSilent)
	}
	defer cancel()
	for {
		o.Ordinary = r.slot.buy(buying, last, r.items, r.plan.Strategy, fmt.Sprintf("%s-ordinary-%d", r.buyers[0].id, o.Afterwards))
		if buying.Err() != nil {
			return end, note, context.Cause(buying)
		}
		if !r.plan.Baskets || o.Ordinary != string(load.Sold) || o.Afterwards > 2*o.Stock {
			break
		}
		o.Afterwards++
	}
	end, err = r.lookAtEnd(ctx, o)
	if r.plan.Baskets {
		return end, words.Of("note.ordinary-bought", "n", o.Afterwards, "answer", o.Ordinary), err
	}
	return end, words.Of("note.ordinary", "before", note, "answer", o.Ordinary), err
}
