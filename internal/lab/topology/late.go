package topology

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/sale"
)

// late has A buy the last unit through the first server, and B through the second shop before the copy has that. B
// is held when it has read. Then the copy catches up, B goes on, and others buy what seems to be left.
func late(ctx context.Context, g *group) error {
	for _, c := range g.cells { // one by one: where GET_LOCK goes to the replica, sales that share connections keep the lock
		for range c.item.InitialStock - 1 { // of which no customer reads an old stock
			if err := c.sell(ctx, 1); err != nil && c.problem == nil {
				c.problem = err
			}
			if err := g.copied(ctx); err != nil {
				return err
			}
		}
	}
	if err := g.logReads(ctx); err != nil {
		return err
	}
	release, err := g.holdCopies(ctx)
	if err != nil {
		return err
	}
	g.noteAll(1, explain.IsBehind, explain.Facts{})
	for _, c := range g.cells {
		if got := c.buy(ctx, 0, 1); got != load.Sold && c.problem == nil {
			c.problem = fmt.Errorf("customer A was answered with %s", got)
		}
	}
	second := make([]*buyer, len(g.cells))
	committing := 0 // of those who have come before
	for i, c := range g.cells {
		b := c.ask(ctx, 1, 1, sale.Read)
		second[i] = b
		err := g.await(ctx, c.of.Name+": B has read, is answered or waits in MySQL", func() (bool, error) {
			if b.held() || b.isAnswered() {
				return true, nil
			}
			waits, commits, err := g.waitsAtCopy(ctx, c.item.ItemID)
			if commits > committing {
				committing = commits
				return true, nil
			}
			return waits, err
		})
		if err != nil {
			return err
		}
		if b.held() || b.isAnswered() {
			if err := c.hasRead(ctx, b); err != nil {
				return err
			}
		}
	}
	if err := release(ctx); err != nil {
		return err
	}
	if err := g.copied(ctx); err != nil {
		return err
	}
	g.noteAll(1, explain.HasCaughtUp, explain.Facts{})
	for _, b := range second {
		if err := b.release(ctx); err != nil {
			return err
		}
		<-b.done
	}
	return nil
}

// waitsAtCopy reports whether a statement about the item waits for a row at the second server, and how many
// commits of shops wait there.
func (g *group) waitsAtCopy(ctx context.Context, item uint64) (waits bool, commits int, err error) {
	statements, commits, err := g.nodes[1].Waiting(ctx)
	of := regexp.MustCompile(fmt.Sprintf(`\b%d\b`, item))
	return slices.ContainsFunc(statements, of.MatchString), commits, err
}
