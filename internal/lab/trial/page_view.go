package trial

import (
	"context"
	"time"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
)

// aroundView makes a page view before the first sale, and holds it where it has read the row. Sales are made
// one at a time until one has written the row and renewed the copy. When none is under way, the page view goes
// on and stores its own copy. So nobody else can renew that before the next sale reads it.
func (p *play) aroundView(ctx context.Context) {
	a := p.attack
	ctx, cancel := context.WithTimeout(ctx, playPatience)
	defer cancel()
	shop := len(a.Shops) - 1 // the first sale goes to the first shop
	order := load.Order{
		Shop: a.Shops[shop].URL, ItemID: a.item.ItemID, RequestID: a.customers.prefix + "-view", Strategy: a.Of.Name, Run: a.item.ID,
		Fault: labmode.Fault{Point: p.At, Action: labmode.Hold, For: holdAtMost},
	}
	p.view = explain.Request{ID: order.RequestID, Shop: explain.ShopName(shop), Sent: time.Now()}
	shown := make(chan struct{})
	a.background.Go(func() {
		defer close(shown)
		p.problem(load.View(a.ctx, order))
		p.view.Answered = time.Now()
	})
	var read time.Time
	held := p.await(ctx, ReachedPoint, func() (Seen, bool) {
		e, ok := p.viewPassed(p.At)
		read = e.Time
		return Seen{Request: order.RequestID}, ok
	})
	if !held {
		<-shown
		return
	}
	a.customers.takeTurns()
	overtaken := p.await(ctx, Overtaken, func() (Seen, bool) {
		e, sold := a.feed.find(func(e labmode.Event) bool {
			h := a.customers.byID(e.Request)
			return e.Point == sale.Written && e.Time.After(read) && h != nil && h.Got() == load.Sold
		})
		return Seen{Request: e.Request}, sold
	})
	a.customers.rest(ctx)
	p.problem(load.Release(context.WithoutCancel(ctx), order.Shop, order.RequestID))
	<-shown
	if overtaken {
		p.await(ctx, CopyStored, func() (Seen, bool) {
			_, ok := p.viewPassed(sale.Stored)
			return Seen{Request: order.RequestID}, ok
		})
	}
}

func (p *play) viewPassed(point sale.Point) (labmode.Event, bool) {
	return p.attack.feed.find(func(e labmode.Event) bool { return e.Request == p.view.ID && e.Point == point })
}
