package scenario

import (
	"context"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/topology"
	"stocklock/internal/lab/trial"
)

// lastShop is the one that is led to the primary which comes back.
const lastShop = topology.Shops - 1

// errant is [failOver]. Then the old primary comes back with its disk, and with transactions that nobody else has.
// It takes itself for the primary, and a shop is led to it. A customer of each strategy comes to that shop.
func errant(ctx context.Context, g *trial.Group) error {
	if err := failOver(ctx, g); err != nil {
		return err
	}
	// What is to be written of the sales before is written on the new primary first. On the old one, a worker would find
	// the order of a sale whose answer it never got, and take it for written.
	if err := g.Each(ctx, func(ctx context.Context, s *trial.Show) error { return settle(ctx, s) }); err != nil {
		return err
	}
	old, primary := g.Database.Nodes[0], g.Database.Nodes[1]
	if err := old.Restart(ctx); err != nil {
		return err
	}
	g.CameBack(0)
	committed, err := old.Committed(ctx)
	if err != nil {
		return err
	}
	g.Note(0, explain.HasCommitted, explain.Facts{GTIDs: committed})
	g.Database.Fronts[lastShop].Lead(old.Addr)
	g.Note(0, explain.IsFound, explain.Facts{Shop: explain.ShopName(lastShop)})
	misled := g.OneEach(ctx, func(int) int { return lastShop })
	if err := g.Await(ctx, "every customer is answered or waits for a replica", func() (bool, error) { return answeredOrWaiting(ctx, g, misled) }); err != nil {
		return err
	}
	g.Database.Fronts[lastShop].Lead(primary.Addr)
	g.Note(1, explain.IsFound, explain.Facts{Shop: explain.ShopName(lastShop)})
	for _, b := range misled {
		<-b.Done()
	}
	if err := old.Kill(); err != nil {
		return err
	}
	g.Note(0, explain.IsKilled, explain.Facts{})
	return g.ShopsReady(ctx)
}
