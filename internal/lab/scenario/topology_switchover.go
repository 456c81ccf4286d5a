package scenario

import (
	"context"
	"fmt"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/trial"
)

// switchOver makes the replica the primary as it is planned: the old one takes no writes any more, the replica gets
// everything, and new connections find it. The old one goes on, with its connections. A comes to the first shop, whose
// sales are refused until it connects anew, and buys the last unit. B comes to the second shop, which has its old
// connections only: a read is answered there. B is held when it has read. Another sale of the shop finds out, which
// ends the old connections, and B goes on.
func switchOver(ctx context.Context, g *trial.Group) error {
	err := g.Each(ctx, func(ctx context.Context, s *trial.Show) error { return sell(ctx, s, int(s.Items[0].InitialStock)-1) })
	if err != nil {
		return err
	}
	other, err := g.Beside(ctx, finder, int64(mostAsks*(1+len(g.Shows))))
	if err != nil {
		return err
	}
	if err := g.LogReads(ctx); err != nil {
		return err
	}
	old, primary := g.Database.Nodes[0], g.Database.Nodes[1]
	if err := old.RefuseWrites(ctx); err != nil {
		return err
	}
	g.Note(0, explain.IsReadOnly, explain.Facts{})
	if err := g.Database.Copied(ctx); err != nil {
		return err
	}
	if err := promoted(ctx, g); err != nil {
		return err
	}
	for _, front := range g.Database.Fronts {
		front.LeadNew(primary.Addr)
	}
	if err := g.TookOver(1, explain.IsFoundByNew); err != nil {
		return err
	}
	for _, s := range g.Shows {
		s.Fail(buyInTheEnd(ctx, s, 0))
	}
	const second = 1
	front := g.Database.Fronts[second]
	for _, s := range g.Shows {
		if err := connectAnew(ctx, g, second, old.Addr, other.Items[0]); err != nil { // the cell before has ended the old connections
			return err
		}
		s.Note(0, explain.HasConnections, explain.Facts{Shop: explain.ShopName(second)})
		b := s.Ask(ctx, heldAtRead(second))
		if err := g.Await(ctx, s.Of.Name+": B has read or is answered", func() (bool, error) { return s.Reached(b) || b.Answered(), nil }); err != nil {
			return err
		}
		if s.Reached(b) {
			if err := s.HasRead(ctx, b); err != nil {
				return err
			}
		}
		front.LeadNew(primary.Addr)
		if err := buyInTheEnd(ctx, other, second); err != nil {
			return err
		}
		s.Note(1, explain.IsFound, explain.Facts{Shop: explain.ShopName(second)})
		s.Release(ctx, b)
		<-b.Done()
	}
	return g.ShopsReady(ctx)
}

// finder is a strategy whose sale begins with a write, so that it is refused where the server is read-only. The shop
// then closes its idle connections.
const finder = "conditional"

// connectAnew closes the connections of a shop, and has it make new ones to a server: it shows an item.
func connectAnew(ctx context.Context, g *trial.Group, shop int, addr string, item audit.Run) error {
	g.Database.Fronts[shop].Lead(addr)
	return g.Await(ctx, "the shop reads again", func() (bool, error) {
		err := load.View(ctx, load.Order{Shop: g.Shops[shop].URL, ItemID: item.ItemID, Strategy: finder, Run: item.ID})
		return err == nil, err
	})
}

// buyInTheEnd buys a unit at a shop, which may refuse it until it has found the server that takes writes.
func buyInTheEnd(ctx context.Context, s *trial.Show, shop int) error {
	for range mostAsks {
		switch got := s.Buy(ctx, shop, 1); got {
		case load.Sold:
			return nil
		case load.SoldOut:
			return fmt.Errorf("%w: a customer buys at shop %d, and was answered with %s", trial.ErrNotSeen, shop+1, got)
		}
	}
	return fmt.Errorf("%w: a customer buys at shop %d, and was never answered as sold", trial.ErrNotSeen, shop+1)
}
