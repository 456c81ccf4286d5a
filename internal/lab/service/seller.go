package service

import (
	"context"
	"fmt"
	"time"

	"stocklock/internal/lab/count"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/seen"
)

// Seller is a service as the cells of the lab see it: package trial says what they ask of one.
type Seller struct {
	*Service
	// Late says that sales go on when they have answered.
	Late bool
}

const (
	retryBusy = 20 * time.Millisecond // after which a customer who was rejected as busy asks again
	patience  = 15 * time.Second      // for which a customer does
)

// Offer makes an item with so many units and no orders.
func (s Seller) Offer(ctx context.Context, units int64) (uint64, error) {
	item := s.NewItem()
	return uint64(item), s.SetStock(ctx, item, units)
}

// Send has the customer of an order buy one unit, who asks again when the service is busy.
func (s Seller) Send(ctx context.Context, o load.Order) load.Answer {
	at := s.Processes[0]
	for _, p := range s.Processes {
		if p.URL == o.Shop {
			at = p
		}
	}
	own := s.NewSale(int64(o.ItemID))
	s.requests.Store(own.Customer, o.RequestID)
	a := load.Answer{Order: o, Sent: time.Now()}
	for {
		r := s.Buy(ctx, at, own)
		a.Latency = time.Since(a.Sent)
		if r.Outcome != load.Busy || a.Latency > patience || seen.Pause(ctx, retryBusy) != nil {
			a.Outcome, a.Status, a.Err = r.Outcome, r.Status, r.Err
			if r.Outcome == load.Failed { // of others, nobody here can read it
				a.Body = []byte(r.Body)
			}
			return a
		}
	}
}

// Count returns how many units of an item are left, and its orders by the requests of their customers.
func (s Seller) Count(ctx context.Context, item uint64) (left int64, orders map[string][]count.Order, err error) {
	left, all, err := s.Counts(ctx, int64(item))
	orders = map[string][]count.Order{}
	for _, o := range all {
		by := o.Customer
		if request, ok := s.requests.Load(by); ok {
			by = request.(string)
		}
		orders[by] = append(orders[by], count.Order{Units: count.Units{item: o.Units}})
	}
	return left, orders, err
}

// Settle waits until no sale changes the count of an item any more. Where all units are sold or left, and no sale goes on behind
// its answer, that is so at once.
func (s Seller) Settle(ctx context.Context, item uint64, units int64) error {
	var addsUp func(int64, []Order) bool
	if !s.Late {
		addsUp = func(left int64, orders []Order) bool { return InAll(left, orders) == units }
		if left, orders, err := s.Counts(ctx, int64(item)); err != nil || addsUp(left, orders) {
			return err
		}
	}
	still, err := s.Still(ctx, int64(item), addsUp)
	if err == nil && !still {
		err = fmt.Errorf("the count still changed %s after the last answer", s.longestChange())
	}
	return err
}
