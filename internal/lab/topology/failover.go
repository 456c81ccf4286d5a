package topology

import (
	"context"
	"fmt"

	"stocklock/internal/lab/explain"
	"stocklock/internal/testserver"
)

// failOver sells, keeps the copies behind, sells more, kills the primary, has another server take over, and
// sells what is left. Every strategy has a customer on the way when the primary dies, and one who comes when
// nobody answers.
func failOver(ctx context.Context, g *group) error {
	takeOver, err := g.soldAndCutOff(ctx, 2)
	if err != nil {
		return err
	}
	waiting := g.oneEach(ctx, func(cell int) (shop int) { return cell })
	if err := g.await(ctx, "every customer is answered or waits for a copy", func() (bool, error) { return g.answeredOrWaiting(ctx, waiting) }); err != nil {
		return err
	}
	if g.link != nil {
		if err := g.remember(ctx); err != nil {
			return err
		}
	}
	if err := g.nodes[0].Kill(); err != nil {
		return err
	}
	g.noteAll(0, explain.IsKilled, explain.Facts{})
	during := g.oneEach(ctx, func(cell int) (shop int) { return cell + 1 })
	for i := range g.cells {
		<-waiting[i].done
		<-during[i].done
	}
	if err := takeOver(ctx); err != nil {
		return err
	}
	return g.ready(ctx)
}

// oneEach sends a customer of each cell to a shop, who wants one unit.
func (g *group) oneEach(ctx context.Context, shop func(cell int) int) []*buyer {
	all := make([]*buyer, len(g.cells))
	for i, c := range g.cells {
		all[i] = c.ask(ctx, shop(i)%len(g.shops), 1, "")
	}
	return all
}

// answeredOrWaiting reports whether each of these customers has an answer, or has a transaction that waits for
// the replica.
func (g *group) answeredOrWaiting(ctx context.Context, all []*buyer) (bool, error) {
	unanswered := 0
	for _, b := range all {
		if !b.isAnswered() {
			unanswered++
		}
	}
	if unanswered == 0 || g.Topology.Waits != testserver.Forever {
		return unanswered == 0, nil
	}
	commits, err := g.nodes[0].WaitingCommits(ctx)
	if err != nil {
		return false, err
	}
	for _, b := range all {
		if b.isAnswered() && b.cell.of.AnswersFirst {
			commits-- // it may be the order of that one
		}
	}
	return commits >= unanswered, nil
}

// soldAndCutOff sells so many units that every server has, and is [group.cutOff] then.
func (g *group) soldAndCutOff(ctx context.Context, units int) (takeOver func(context.Context) error, err error) {
	if err := g.each(ctx, func(ctx context.Context, c *cell) error { return c.sell(ctx, units) }); err != nil {
		return nil, err
	}
	if err := g.copied(ctx); err != nil {
		return nil, err
	}
	return g.cutOff(ctx)
}

// cutOff keeps what is committed from now on from the server that is going to take over, as far as the topology
// lets it. It returns how that takes over from a dead primary.
func (g *group) cutOff(ctx context.Context) (takeOver func(context.Context) error, err error) {
	if len(g.nodes) == 1 {
		return func(ctx context.Context) error {
			g.noteAll(0, explain.IsRestarted, explain.Facts{})
			return g.nodes[0].Restart(ctx)
		}, nil
	}
	if g.galera {
		release, err := g.nodes[1].HoldApplying(ctx)
		if err != nil {
			return nil, err
		}
		g.noteAll(1, explain.IsBehind, explain.Facts{})
		return func(ctx context.Context) error {
			if err := release(); err != nil {
				return err
			}
			return g.restGoesOn(ctx)
		}, nil
	}
	if err := g.link.Cut(); err != nil {
		return nil, err
	}
	g.noteAll(1, explain.IsCut, explain.Facts{})
	return g.promote, nil
}

// restGoesOn waits until the nodes without the first are a cluster, and leads the shops there.
func (g *group) restGoesOn(ctx context.Context) error {
	rest := len(g.nodes) - 1
	if err := g.nodes[1].AwaitMembers(ctx, rest); err != nil {
		return err
	}
	g.noteAll(1, explain.HasMembers, explain.Facts{Count: rest})
	return g.leadAll(1)
}

// promote makes the replica the primary, with what it has received, and leads the shops there.
func (g *group) promote(ctx context.Context) error {
	if err := g.promoted(ctx); err != nil {
		return err
	}
	return g.leadAll(1)
}

func (g *group) promoted(ctx context.Context) error {
	next := g.nodes[1]
	was, err := next.Replication(ctx)
	if err != nil {
		return err
	}
	if err := next.Promote(ctx); err != nil {
		return err
	}
	g.history.of[1].Received = was.Received
	g.noteAll(1, explain.IsPromoted, explain.Facts{GTIDs: was.Received})
	return nil
}

// leadAll leads all shops to a server, whose orders count from now on.
func (g *group) leadAll(node int) error {
	g.lead(node)
	g.tookOver(node)
	g.noteAll(node, explain.IsFound, explain.Facts{})
	return g.countOn(node)
}

// remember records what a primary had committed, and whether it waited for its replica then.
func (g *group) remember(ctx context.Context) error {
	committed, err := g.nodes[0].Committed(ctx)
	if err != nil {
		return fmt.Errorf("ask the primary for what it has committed: %w", err)
	}
	g.noteAll(0, explain.HasCommitted, explain.Facts{GTIDs: committed})
	if g.Topology.Waits == 0 {
		return nil
	}
	return g.seeWaiting(ctx)
}

// seeWaiting records how many commits wait for the replica, or that the primary has stopped to wait for it.
func (g *group) seeWaiting(ctx context.Context) error {
	waits, err := g.nodes[0].AwaitsReplica(ctx)
	if err != nil {
		return err
	}
	commits, err := g.nodes[0].WaitingCommits(ctx)
	if err != nil {
		return err
	}
	h := &g.history.of[0]
	switch {
	case waits && g.Topology.Waits == shortPatience:
		return fmt.Errorf("%w: the primary goes on alone", errNotSeen)
	case waits:
		h.Waiting = commits
		g.noteAll(0, explain.CommitsWait, explain.Facts{Count: commits})
	default:
		h.Alone = true
		g.noteAll(0, explain.GoesOnAlone, explain.Facts{})
	}
	return nil
}
