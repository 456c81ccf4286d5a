package scenario

import (
	"context"
	"fmt"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/seen"
	"stocklock/internal/lab/trial"
)

// switchOver makes the replica the primary as it is planned: the old one takes no writes any more, the replica gets
// everything, and new connections find it. The old one goes on, with its connections. A comes to the first shop, whose
// sales are refused until it connects anew, and buys the last unit. B comes to the second shop, which has its old
// connections only: a read is answered there. B is held when it has read. Another sale of the shop finds out, which
// ends the old connections, and B goes on.
func switchOver(p *servers) {
	const second = 1
	old, primary, front := p.Database.Nodes[0], p.Database.Nodes[1], p.Database.Fronts[second]
	p.each(func(ctx context.Context, s *trial.Show) error { return sell(ctx, s, int(s.Items[0].InitialStock)-1) })
	var other *trial.Show
	p.do(func(ctx context.Context) (err error) {
		other, err = p.Beside(ctx, finder, int64(mostAsks*(1+len(p.Shows))))
		return err
	}, p.LogReads, old.RefuseWrites)
	p.note(0, explain.IsReadOnly, explain.Facts{})
	p.do(p.Database.Copied)
	p.promote()
	p.do(func(ctx context.Context) error {
		for _, front := range p.Database.Fronts {
			front.LeadNew(primary.Addr)
		}
		if err := p.TookOver(1, explain.IsFoundByNew); err != nil {
			return err
		}
		for _, s := range p.Shows {
			s.Fail(buyInTheEnd(ctx, s, 0))
		}
		return nil
	})
	for _, s := range p.Shows {
		p.do(func(ctx context.Context) error { // the cell before has ended the old connections
			err := connectAnew(ctx, p.Group, second, old.Addr, other.Items[0])
			s.Note(0, explain.HasConnections, explain.Facts{Shop: explain.ShopName(second)})
			return err
		})
		b := p.reads(s, second)
		p.do(func(ctx context.Context) error {
			front.LeadNew(primary.Addr)
			if err := buyInTheEnd(ctx, other, second); err != nil {
				return err
			}
			s.Note(1, explain.IsFound, explain.Facts{Shop: explain.ShopName(second)})
			s.Release(ctx, b)
			<-b.Done()
			return nil
		})
	}
	p.do(p.ShopsReady)
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
	for n, began := 0, time.Now(); n < mostAsks || time.Since(began) < servesAgain(s); n++ {
		switch got := s.Buy(ctx, shop, 1); got {
		case load.Sold:
			return nil
		case load.SoldOut:
			return fmt.Errorf("%w: a customer buys at shop %d, and was answered with %s", trial.ErrNotSeen, shop+1, got)
		}
		if err := seen.Pause(ctx, askAgainIn); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: a customer buys at shop %d, and was never answered as sold", trial.ErrNotSeen, shop+1)
}
