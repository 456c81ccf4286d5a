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
func (p *servers) remember(ctx context.Context) error {
	committed, err := p.Database.Nodes[0].Committed(ctx)
	if err != nil {
		return fmt.Errorf("ask the primary for what it has committed: %w", err)
	}
	p.Note(0, explain.HasCommitted, explain.Facts{GTIDs: committed})
	if p.Scenario.Topology.Waits == 0 {
		return nil
	}
	return p.seeWaiting(ctx)
}

// seeWaiting records how many commits wait for the replica, or that the primary has stopped to wait for it.
func (p *servers) seeWaiting(ctx context.Context) error {
	waits, err := p.Database.Nodes[0].AwaitsReplica(ctx)
	if err != nil {
		return err
	}
	commits, err := p.Database.Nodes[0].WaitingCommits(ctx)
	if err != nil {
		return err
	}
	switch {
	case waits && p.Scenario.Topology.Waits == topology.ShortPatience:
		return fmt.Errorf("%w: the primary goes on alone", trial.ErrNotSeen)
	case waits:
		p.Note(0, explain.CommitsWait, explain.Facts{Count: commits})
	default:
		p.Note(0, explain.GoesOnAlone, explain.Facts{})
	}
	return nil
}

// rewound has a sale read at the old primary, after sales that the new one never gets. At the new one others sell
// twice as many units in as many sales, so that the version is the same and the stock is not. Then the sale goes
// on.
func rewound(p *servers) {
	const sales = 4
	p.sold(sales)
	takeOver := p.cutOff()
	p.each(func(ctx context.Context, s *trial.Show) error { return sell(ctx, s, sales) })
	p.do(p.LogReads)
	var reading []*trial.Customer
	for _, s := range p.Shows {
		reading = append(reading, p.reads(s, 0))
	}
	p.do(p.remember)
	p.kill(0)
	takeOver()
	p.do(p.ShopsReady)
	p.each(func(ctx context.Context, s *trial.Show) error {
		for range sales {
			switch got := s.Buy(ctx, 1, 2); got {
			case load.Sold:
			case load.Busy:
				return nil // the sale that has read keeps the others out
			default:
				return fmt.Errorf("%w: others are sold units or kept out, and one was answered with %s", trial.ErrNotSeen, got)
			}
		}
		return nil
	})
	p.finish(reading)
}
