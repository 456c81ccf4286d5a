package scenario

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/trial"
)

// lateCopy has A buy the last unit through the first server, and B through the second shop before the copy has that. B
// is held when it has read. Then the copy catches up, B goes on, and others buy what seems to be left.
func lateCopy(ctx context.Context, g *trial.Group) error {
	for _, s := range g.Shows { // one by one: where GET_LOCK goes to the replica, sales that share connections keep the lock
		for range s.Items[0].InitialStock - 1 { // of which no customer reads an old stock
			s.Fail(sell(ctx, s, 1))
			if err := g.Database.Copied(ctx); err != nil {
				return err
			}
		}
	}
	if err := g.LogReads(ctx); err != nil {
		return err
	}
	release, err := g.Database.HoldCopies(ctx)
	if err != nil {
		return err
	}
	g.Note(1, explain.IsBehind, explain.Facts{})
	for _, s := range g.Shows {
		if got := s.Buy(ctx, 0, 1); got != load.Sold {
			s.Fail(fmt.Errorf("customer A was answered with %s", got))
		}
	}
	second := make([]*trial.Customer, len(g.Shows))
	committing := 0 // of those who have come before
	for i, s := range g.Shows {
		b := s.Ask(ctx, heldAtRead(1))
		second[i] = b
		err := g.Await(ctx, s.Of.Name+": B has read, is answered or waits in MySQL", func() (bool, error) {
			if s.Reached(b) || b.Answered() {
				return true, nil
			}
			waits, commits, err := waitsAtCopy(ctx, g, s.Items[0].ItemID)
			if commits > committing {
				committing = commits
				return true, nil
			}
			return waits, err
		})
		if err != nil {
			return err
		}
		if s.Reached(b) || b.Answered() {
			if err := s.HasRead(ctx, b); err != nil {
				return err
			}
		}
	}
	if err := release(ctx); err != nil {
		return err
	}
	if err := g.Database.Copied(ctx); err != nil {
		return err
	}
	g.Note(1, explain.HasCaughtUp, explain.Facts{})
	for i, b := range second {
		g.Shows[i].Release(ctx, b)
		<-b.Done()
	}
	return nil
}

// waitsAtCopy reports whether a statement about the item waits for a row at the second server, and how many
// commits of shops wait there.
func waitsAtCopy(ctx context.Context, g *trial.Group, item uint64) (waits bool, commits int, err error) {
	statements, commits, err := g.Database.Nodes[1].Waiting(ctx)
	of := regexp.MustCompile(fmt.Sprintf(`\b%d\b`, item))
	return slices.ContainsFunc(statements, of.MatchString), commits, err
}
