package trial

import (
	"cmp"
	"context"
	"os"
	"slices"

	"stocklock/internal/lab/explain"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/stock"
	"stocklock/internal/strategy/declared"
)

// traceFile is the part of a shop's trace that was written since the attack began.
type traceFile struct {
	path string
	from int64
}

func (g *Group) markTraces() {
	for _, shop := range g.Shops {
		if shop.Trace == "" {
			g.traces = nil
			return
		}
		f := traceFile{path: shop.Trace}
		if info, err := os.Stat(f.path); err == nil {
			f.from = info.Size()
		}
		g.traces = append(g.traces, f)
	}
}

// evidence gathers what is known after the attack, when all is at rest.
func (a *attack) evidence(ctx context.Context) (explain.Evidence, error) {
	orders, err := a.Store.ItemOrders(ctx, a.item.ItemID)
	if err != nil {
		return explain.Evidence{}, err
	}
	a.unfollow()
	a.feed.following.Wait()
	return a.evidenceWith(orders), nil
}

func (a *attack) evidenceWith(orders []stock.Order) explain.Evidence {
	slices.SortStableFunc(a.feed.events, func(x, y labmode.Event) int { return cmp.Compare(x.Shop, y.Shop) })
	e := explain.Evidence{
		Declared: a.Of, Lease: a.o.Lease,
		Exclusive: a.Of.Properties.Meets(declared.Exclusive) || a.Of.Lease.Kept != declared.NoLease, Recovers: a.Of.Properties.Meets(declared.Recovers),
		InitialStock: a.o.Stock, Began: a.begun, Ended: a.ended, Traced: len(a.traces) > 0, Events: a.feed.events,
		Changes: a.record.changes, View: a.play.view, Interventions: a.record.interventions, Orders: orders, SentAway: a.sentAway,
	}
	if a.Of.NeedsEtcd {
		e.Unwatched = "etcd"
		e.Interventions = ofEtcd(e.Interventions)
	}
	if a.stuck != nil {
		e.Fenced, e.Locks = a.stuck.fenced, a.stuck.locks
	}
	e.Outlasted = a.outlasted()
	// Customers after the attack are no part of it: they met no fault, and its stock was sold.
	byRequest, after := map[string]int{}, map[string]*Customer{}
	for _, h := range a.customers.hits {
		switch {
		case h.number >= a.requests:
			after[h.id] = h
		case !h.Sent.IsZero():
			byRequest[h.id] = h.shop
			r := a.request(h)
			r.LetGo = h.letGo
			e.Requests = append(e.Requests, r)
		}
	}
	e.Orders = slices.DeleteFunc(e.Orders, func(o stock.Order) bool {
		h := after[o.RequestID]
		if h != nil && o.CancelledAt == nil && (len(a.restocks) == 0 || h.Sent.Before(a.restocks[0].at)) {
			e.SoldLater += o.Quantity
		}
		return h != nil || o.CancelledAt != nil
	})
	e.Events = slices.DeleteFunc(e.Events, func(of labmode.Event) bool { return after[of.Request] != nil })
	for i := range e.Orders {
		if shop, ok := byRequest[e.Orders[i].RequestID]; ok {
			e.Orders[i].Shop = explain.ShopName(shop)
		}
	}
	return e
}

// ofEtcd names interventions for what they mean to a lock in etcd: a shop that loses Redis loses etcd,
// too.
func ofEtcd(done []explain.Intervention) []explain.Intervention {
	done = slices.Clone(done)
	for i := range done {
		if done[i].What == "redis-cut" {
			done[i].What = "etcd-cut"
		}
	}
	return done
}

// request is a request with its answer, where it has one.
func (a *attack) request(h *Customer) explain.Request {
	r := explain.Request{
		ID: h.id, Shop: explain.ShopName(h.shop), Sent: h.Sent, Outcome: string(h.Outcome), Key: h.wish.key, Nested: h.nested, Fault: h.first, Lease: h.lease, Paused: h.first && a.Scenario.Crowd.Paused}
	if h.Status != 0 || h.Err != nil {
		r.Answered = h.Sent.Add(h.Latency)
	}
	return r
}
