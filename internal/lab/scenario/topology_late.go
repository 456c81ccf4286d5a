package scenario

import (
	"context"
	"fmt"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/trial"
)

// lateCopy has A buy the last unit through the first server, and B through the second shop before the copy has that. B
// is held when it has read. Then the copy catches up, B goes on, and others buy what seems to be left.
func lateCopy(p *servers) {
	for _, s := range p.Shows { // one by one: where GET_LOCK goes to the replica, sales that share connections keep the lock
		for range s.Items[0].InitialStock - 1 { // of which no customer reads an old stock
			p.do(func(ctx context.Context) error {
				s.Fail(sell(ctx, s, 1))
				return p.Database.Copied(ctx)
			})
		}
	}
	var release func(context.Context) error
	p.do(p.LogReads, func(ctx context.Context) (err error) {
		release, err = p.Database.HoldCopies(ctx)
		return err
	})
	p.note(1, explain.IsBehind, explain.Facts{})
	for _, s := range p.Shows {
		p.do(func(ctx context.Context) error {
			if got := s.Buy(ctx, 0, 1); got != load.Sold {
				s.Fail(fmt.Errorf("customer A was answered with %s", got))
			}
			return nil
		})
	}
	second := make([]*trial.Customer, len(p.Shows))
	committing := 0 // of those who have come before
	waits := p.Waits.At(p.Database.Nodes[1].Ask)
	for i, s := range p.Shows {
		p.do(func(ctx context.Context) error {
			b := s.Ask(ctx, heldAtRead(1))
			second[i] = b
			err := p.Await(ctx, s.Of.Name+": B has read, is answered or waits in MySQL", func() (bool, error) {
				if s.Reached(b) || b.Answered() {
					return true, nil
				}
				commits, err := p.Database.Nodes[1].Certifying(ctx)
				if err != nil {
					return false, err
				}
				if commits > committing {
					committing = commits
					return true, nil
				}
				now, err := waits.Look(ctx)
				return now.On(s.Names), err
			})
			if err == nil && (s.Reached(b) || b.Answered()) {
				err = s.HasRead(ctx, b)
			}
			return err
		})
	}
	p.do(release, p.Database.Copied)
	p.note(1, explain.HasCaughtUp, explain.Facts{})
	p.finish(second)
}
