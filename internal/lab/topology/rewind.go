package topology

import (
	"context"
	"fmt"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/sale"
)

// rewound has a sale read at the old primary, after sales that the new one never gets. At the new one others sell
// twice as many units in as many sales, so that the version is the same and the stock is not. Then the sale goes
// on.
func rewound(ctx context.Context, g *group) error {
	const sales = 4
	takeOver, err := g.soldAndCutOff(ctx, sales)
	if err != nil {
		return err
	}
	reading := make([]*buyer, len(g.cells))
	err = g.each(ctx, func(ctx context.Context, c *cell) error { return c.sell(ctx, sales) })
	if err != nil {
		return err
	}
	if err := g.logReads(ctx); err != nil {
		return err
	}
	for i, c := range g.cells {
		b := c.ask(ctx, 0, 1, sale.Read)
		reading[i] = b
		if err := g.await(ctx, c.of.Name+": the sale has read or is answered", func() (bool, error) { return b.held() || b.isAnswered(), nil }); err != nil {
			return err
		}
		if b.held() {
			if err := c.hasRead(ctx, b); err != nil {
				return err
			}
		}
	}
	if err := g.remember(ctx); err != nil {
		return err
	}
	if err := g.nodes[0].Kill(); err != nil {
		return err
	}
	g.noteAll(0, explain.IsKilled, explain.Facts{})
	if err := takeOver(ctx); err != nil {
		return err
	}
	if err := g.ready(ctx); err != nil {
		return err
	}
	err = g.each(ctx, func(ctx context.Context, c *cell) error {
		for range sales {
			if got := c.buy(ctx, 1, 2); got != load.Sold {
				break // P keeps the others out
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, b := range reading {
		if err := b.release(ctx); err != nil {
			return fmt.Errorf("%s: %w", b.cell.of.Name, err)
		}
		<-b.done
	}
	return nil
}
