package scenario

import (
	"context"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/topology"
)

// lastShop is the one that is led to the primary which comes back.
const lastShop = topology.Shops - 1

// errant is [failOver]. Then the old primary comes back with its disk, and with transactions that nobody else has.
// It takes itself for the primary, and a shop is led to it. A customer of each strategy comes to that shop.
func errant(p *servers) {
	failOver(p)
	// What is to be written of the sales before is written on the new primary first. On the old one, a worker would find
	// the order of a sale whose answer it never got, and take it for written.
	p.each(settle)
	old, primary := p.Database.Nodes[0], p.Database.Nodes[1]
	lead := func(node int, addr string) {
		p.Database.Fronts[lastShop].Lead(addr)
		p.Note(node, explain.IsFound, explain.Facts{Shop: explain.ShopName(lastShop)})
	}
	p.do(old.Restart, func(ctx context.Context) error {
		p.CameBack(0)
		committed, err := old.Committed(ctx)
		if err != nil {
			return err
		}
		p.Note(0, explain.HasCommitted, explain.Facts{GTIDs: committed})
		lead(0, old.Addr)
		return nil
	})
	misled := p.oneEach(func(int) int { return lastShop })
	p.awaitAll(misled)
	p.do(func(context.Context) error {
		lead(1, primary.Addr)
		return nil
	})
	p.finish(misled)
	p.kill(0)
	p.do(p.ShopsReady)
}
