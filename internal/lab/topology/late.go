package topology

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"stocklock/internal/lab/load"
	"stocklock/internal/sale"
)

// late has A buy the last unit through the first server, and B through the second shop before the copy has that. B
// is held when it has read. Then the copy catches up, B goes on, and others buy what seems to be left.
func late(ctx context.Context, g *group) error {
	for _, c := range g.cells { // one by one: where GET_LOCK goes to the replica, sales that share connections keep the lock
		if err := c.sell(ctx, int(c.item.InitialStock)-1); err != nil && c.problem == nil {
			c.problem = err
		}
	}
	release, err := g.holdCopies(ctx)
	if err != nil {
		return err
	}
	for _, c := range g.cells {
		if got := c.buy(ctx, 0, 1); got != load.Sold && c.problem == nil {
			c.problem = fmt.Errorf("customer A was answered with %s", got)
		}
		c.tell("A buys the last unit at shop 1")
	}
	second := make([]*buyer, len(g.cells))
	committing := 0 // of those who have come before
	for i, c := range g.cells {
		b := c.ask(ctx, 1, 1, sale.Read)
		second[i] = b
		err := g.await(ctx, c.of.Name+": B has read, is answered or waits in MySQL", func() (bool, error) {
			if b.held() || b.answered() {
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
		c.tell("B buys at shop 2, and %s", whereNow(b))
	}
	if err := release(ctx); err != nil {
		return err
	}
	if err := g.copied(ctx); err != nil {
		return err
	}
	g.tellAll("the copy catches up")
	for _, b := range second {
		if err := b.release(ctx); err != nil {
			return err
		}
		<-b.done
		b.cell.tell("B: %s", b.answer.Outcome)
	}
	return nil
}

func whereNow(b *buyer) string {
	switch {
	case b.answered():
		return "is answered"
	case b.held():
		return "has read, and goes no further"
	}
	return "waits"
}

// waitsAtCopy reports whether a statement about the item waits for a row at the second server, and how many
// commits of shops wait there.
func (g *group) waitsAtCopy(ctx context.Context, item uint64) (waits bool, commits int, err error) {
	statements, commits, err := g.nodes[1].Waiting(ctx)
	of := regexp.MustCompile(fmt.Sprintf(`\b%d\b`, item))
	return slices.ContainsFunc(statements, of.MatchString), commits, err
}
