package topology

import (
	"context"
	"fmt"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/sale"
	"stocklock/internal/strategy/declared"
)

// switchOver makes the replica the primary as it is planned: the old one takes no writes any more, the replica gets
// everything, and new connections find it. The old one goes on, with its connections. A comes to the first shop, whose
// sales are refused until it connects anew, and buys the last unit. B comes to the second shop, which has its old
// connections only: a read is answered there. B is held when it has read. Another sale of the shop finds out, which
// ends the old connections, and B goes on.
func switchOver(ctx context.Context, g *group) error {
	err := g.each(ctx, func(ctx context.Context, c *cell) error { return c.sell(ctx, int(c.item.InitialStock)-1) })
	if err != nil {
		return err
	}
	other, err := g.other(ctx)
	if err != nil {
		return err
	}
	if err := g.logReads(ctx); err != nil {
		return err
	}
	old, primary := g.nodes[0], g.nodes[1]
	if err := old.RefuseWrites(ctx); err != nil {
		return err
	}
	g.noteAll(0, explain.IsReadOnly, explain.Facts{})
	if err := g.copied(ctx); err != nil {
		return err
	}
	if err := g.promoted(ctx); err != nil {
		return err
	}
	for _, front := range g.fronts {
		front.LeadNew(primary.Addr)
	}
	g.tookOver(1)
	g.noteAll(1, explain.IsFoundByNew, explain.Facts{})
	if err := g.countOn(1); err != nil {
		return err
	}
	for _, c := range g.cells {
		if err := c.buyInTheEnd(ctx, 0); err != nil && c.problem == nil {
			c.problem = err
		}
	}
	const second = 1
	front := g.fronts[second]
	for _, c := range g.cells {
		if err := g.connectAnew(ctx, second, old.Addr, other.item); err != nil { // the cell before has ended the old connections
			return err
		}
		c.note(0, explain.HasConnections, explain.Facts{Shop: explain.ShopName(second)})
		b := c.ask(ctx, second, 1, sale.Read)
		if err := g.await(ctx, c.of.Name+": B has read or is answered", func() (bool, error) { return b.held() || b.isAnswered(), nil }); err != nil {
			return err
		}
		if b.held() {
			if err := c.hasRead(ctx, b); err != nil {
				return err
			}
		}
		front.LeadNew(primary.Addr)
		if err := other.buyInTheEnd(ctx, second); err != nil {
			return err
		}
		c.note(1, explain.IsFound, explain.Facts{Shop: explain.ShopName(second)})
		if err := b.release(ctx); err != nil {
			return err
		}
		<-b.done
	}
	return g.ready(ctx)
}

// other returns a cell of no result, whose sales make a shop find out where its connections lead.
func (g *group) other(ctx context.Context) (*cell, error) {
	item, err := audit.Start(ctx, g.store, audit.Run{ID: "other-" + time.Now().UTC().Format("150405.000000"), Strategy: finder, InitialStock: int64(mostAsks * (1 + len(g.cells)))})
	return &cell{group: g, of: declared.Strategy{Name: finder}, item: item}, err
}

// finder is a strategy whose sale begins with a write, so that it is refused where the server is read-only. The shop
// then closes its idle connections.
const finder = "conditional"

// connectAnew closes the connections of a shop, and has it make new ones to a server: it shows an item.
func (g *group) connectAnew(ctx context.Context, shop int, addr string, item audit.Run) error {
	g.fronts[shop].Lead(addr)
	return g.await(ctx, "the shop reads again", func() (bool, error) {
		err := load.View(ctx, load.Order{Shop: g.shops[shop].URL, ItemID: item.ItemID, Strategy: finder, Run: item.ID})
		return err == nil, err
	})
}

// buyInTheEnd buys a unit at a shop, which may refuse it until it has found the server that takes writes.
func (c *cell) buyInTheEnd(ctx context.Context, shop int) error {
	for range mostAsks {
		switch got := c.buy(ctx, shop, 1); got {
		case load.Sold:
			return nil
		case load.SoldOut:
			return fmt.Errorf("%w: a customer buys at shop %d, and was answered with %s", errNotSeen, shop+1, got)
		}
	}
	return fmt.Errorf("%w: a customer buys at shop %d, and was never answered as sold", errNotSeen, shop+1)
}
