package topology

import (
	"context"

	"stocklock/internal/lab/explain"
)

// lastShop is the one that is led to the primary which comes back.
const lastShop = Shops - 1

// errant is [failOver]. Then the old primary comes back with its disk, and with transactions that nobody else has.
// It takes itself for the primary, and a shop is led to it. A customer of each strategy comes to that shop.
func errant(ctx context.Context, g *group) error {
	if err := failOver(ctx, g); err != nil {
		return err
	}
	// What is to be written of the sales before is written on the new primary first. On the old one, a worker would find
	// the order of a sale whose answer it never got, and take it for written.
	if err := g.each(ctx, func(ctx context.Context, c *cell) error { return c.settle(ctx) }); err != nil {
		return err
	}
	old, primary := g.nodes[0], g.nodes[1]
	if err := old.Restart(ctx); err != nil {
		return err
	}
	g.cameBack()
	g.noteAll(0, explain.IsRestarted, explain.Facts{})
	committed, err := old.Committed(ctx)
	if err != nil {
		return err
	}
	g.noteAll(0, explain.HasCommitted, explain.Facts{GTIDs: committed})
	g.fronts[lastShop].Lead(old.Addr)
	g.noteAll(0, explain.IsFound, explain.Facts{Shop: explain.ShopName(lastShop)})
	misled := g.oneEach(ctx, func(int) int { return lastShop })
	if err := g.await(ctx, "every customer is answered or waits for a replica", func() (bool, error) { return g.answeredOrWaiting(ctx, misled) }); err != nil {
		return err
	}
	g.fronts[lastShop].Lead(primary.Addr)
	g.noteAll(1, explain.IsFound, explain.Facts{Shop: explain.ShopName(lastShop)})
	for _, b := range misled {
		<-b.done
	}
	if err := old.Kill(); err != nil {
		return err
	}
	g.noteAll(0, explain.IsKilled, explain.Facts{})
	return g.ready(ctx)
}
