package scenario

import (
	"context"
	"fmt"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/topology"
	"stocklock/internal/lab/trial"
)

// remember records what a primary had committed, and whether it waited for its replica then.
func remember(ctx context.Context, g *trial.Group) error {
	committed, err := g.Database.Nodes[0].Committed(ctx)
	if err != nil {
		return fmt.Errorf("ask the primary for what it has committed: %w", err)
	}
	g.Note(0, explain.HasCommitted, explain.Facts{GTIDs: committed})
	if g.Scenario.Topology.Waits == 0 {
		return nil
	}
	return seeWaiting(ctx, g)
}

// seeWaiting records how many commits wait for the replica, or that the primary has stopped to wait for it.
func seeWaiting(ctx context.Context, g *trial.Group) error {
	waits, err := g.Database.Nodes[0].AwaitsReplica(ctx)
	if err != nil {
		return err
	}
	commits, err := g.Database.Nodes[0].WaitingCommits(ctx)
	if err != nil {
		return err
	}
	switch {
	case waits && g.Scenario.Topology.Waits == topology.ShortPatience:
		return fmt.Errorf("%w: the primary goes on alone", trial.ErrNotSeen)
	case waits:
		g.Note(0, explain.CommitsWait, explain.Facts{Count: commits})
	default:
		g.Note(0, explain.GoesOnAlone, explain.Facts{})
	}
	return nil
}

// rewound has a sale read at the old primary, after sales that the new one never gets. At the new one others sell
// twice as many units in as many sales, so that the version is the same and the stock is not. Then the sale goes
// on.
func rewound(ctx context.Context, g *trial.Group) error {
	const sales = 4
	takeOver, err := soldAndCutOff(ctx, g, sales)
	if err != nil {
		return err
	}
	reading := make([]*trial.Customer, len(g.Shows))
	err = g.Each(ctx, func(ctx context.Context, s *trial.Show) error { return sell(ctx, s, sales) })
	if err != nil {
		return err
	}
	if err := g.LogReads(ctx); err != nil {
		return err
	}
	for i, s := range g.Shows {
		b := s.Ask(ctx, heldAtRead(0))
		reading[i] = b
		if err := g.Await(ctx, s.Of.Name+": the sale has read or is answered", func() (bool, error) { return s.Reached(b) || b.Answered(), nil }); err != nil {
			return err
		}
		if s.Reached(b) {
			if err := s.HasRead(ctx, b); err != nil {
				return err
			}
		}
	}
	if err := remember(ctx, g); err != nil {
		return err
	}
	if err := g.Database.Nodes[0].Kill(); err != nil {
		return err
	}
	g.Note(0, explain.IsKilled, explain.Facts{})
	if err := takeOver(ctx); err != nil {
		return err
	}
	if err := g.ShopsReady(ctx); err != nil {
		return err
	}
	err = g.Each(ctx, func(ctx context.Context, s *trial.Show) error {
		for range sales {
			if got := s.Buy(ctx, 1, 2); got != load.Sold {
				break // P keeps the others out
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, b := range reading {
		g.Shows[i].Release(ctx, b)
		<-b.Done()
	}
	return nil
}
