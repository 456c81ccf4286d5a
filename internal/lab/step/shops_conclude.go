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
	case r.plan.Baskets:
		end, note, err = r.othersBuy(ctx, &o)
	// What is sold, time and another customer cannot change. Where an update was lost, the row has a unit to sell still.
	case int64(len(o.Orders)) < o.Stock || o.Lies() > 0 || end.Stock > 0:
		end, note, err = r.anotherBuys(ctx, &o)
	}
	if err != nil {
		return schedule.Record{}, err
	}
	if r.plan.Observe {
		r.entries[r.note(schedule.Entry{Note: note})].State = &end
	}
	return concluded(r.record(o), end, r.timed || r.keepsElsewhere()), nil
}

// anotherBuys has an ordinary customer buy when two leases have passed, or nothing is held.
func (r *shopsRun) anotherBuys(ctx context.Context, o *schedule.Outcome) (end schedule.State, note words.Text, err error) {
	free := !r.lock.Locked() && !r.timed && !r.keepsElsewhere() && !r.unseen && !r.of.AnswersFirst && len(r.of.State.Locks) == 0
	if note = words.Of("note.free"); !free || o.Lies() > 0 {
		note, err = words.Of("note.two-leases"), r.shops.sleep(ctx, 2*r.slot.oneLease())
	}
	if err == nil {
		err = r.slot.restarted(ctx)
	}
	if err != nil {
		return end, note, err
	}
	o.Ordinary = r.buyAsOther(ctx, "-ordinary")
	end, err = r.lookAtEnd(ctx, o)
	return end, ordinaryNote(note, o.Ordinary), err
}

// othersBuy has ordinary customers buy both items until one is refused, when two leases have passed or
// nothing is held.
func (r *shopsRun) othersBuy(ctx context.Context, o *schedule.Outcome) (end schedule.State, note words.Text, err error) {
	o.Items = len(r.items)
	if r.lock.Locked() {
		err = r.shops.sleep(ctx, 2*r.slot.oneLease())
	}
	if err == nil {
		err = r.slot.restarted(ctx)
	}
	if err != nil {
		return end, note, err
	}
	for {
		o.Ordinary = r.buyAsOther(ctx, fmt.Sprintf("-ordinary-%d", o.Afterwards))
		if o.Ordinary != string(load.Sold) || o.Afterwards > 2*o.Stock {
			break
		}
		o.Afterwards++
	}
	end, err = r.lookAtEnd(ctx, o)
	return end, words.Of("note.ordinary-bought", "n", o.Afterwards, "answer", o.Ordinary), err
}

func (r *shopsRun) buyAsOther(ctx context.Context, id string) string {
	return r.slot.buy(ctx, r.customers[len(r.customers)-1].shop.URL, r.items, r.plan.Strategy, r.buyers[0].id+id)
}
