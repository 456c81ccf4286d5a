package topology

import (
	"context"
	"fmt"
)

// failOver sells, keeps the copies behind, sells more, kills the primary, has another server take over, and
// sells what is left. Every strategy has a customer on the way when the primary dies, and one who comes when
// nobody answers.
func failOver(ctx context.Context, g *group) error {
	takeOver, err := g.soldAndCutOff(ctx, 2)
	if err != nil {
		return err
	}
	waiting := make([]*buyer, len(g.cells))
	for i, c := range g.cells {
		waiting[i] = c.ask(ctx, i%len(g.shops), 1, "")
	}
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
	g.tellAll("the primary is killed")
	during := make([]*buyer, len(g.cells))
	for i, c := range g.cells {
		during[i] = c.ask(ctx, (i+1)%len(g.shops), 1, "")
	}
	for i := range g.cells {
		<-waiting[i].done
		<-during[i].done
		g.cells[i].tell("the customer on the way is answered with %s, and one who comes now with %s", waiting[i].answer.Outcome, during[i].answer.Outcome)
	}
	if err := takeOver(ctx); err != nil {
		return err
	}
	return g.ready(ctx)
}

// answeredOrWaiting reports whether each of these customers has an answer, or has a transaction that waits for
// the replica.
func (g *group) answeredOrWaiting(ctx context.Context, all []*buyer) (bool, error) {
	unanswered := 0
	for _, b := range all {
		if !b.answered() {
			unanswered++
		}
	}
	if unanswered == 0 || g.link == nil {
		return unanswered == 0, nil
	}
	commits, err := g.nodes[0].WaitingCommits(ctx)
	if err != nil {
		return false, err
	}
	for _, b := range all {
		if b.answered() && b.cell.of.AnswersFirst {
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
			g.tellAll("the primary is started again, with its disk")
			return g.nodes[0].Restart(ctx)
		}, nil
	}
	next := g.nodes[1]
	lead := func(ctx context.Context) error {
		if err := g.front.Lead(next.Addr); err != nil {
			return err
		}
		g.tellAll("the shops find the other server")
		return g.countOn(1)
	}
	if g.galera {
		release, err := next.HoldApplying(ctx)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) error {
			if err := release(); err != nil {
				return err
			}
			if err := next.AwaitMembers(ctx, len(g.nodes)-1); err != nil {
				return err
			}
			return lead(ctx)
		}, nil
	}
	if err := g.link.Cut(); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		was, err := next.Replication(ctx)
		if err != nil {
			return err
		}
		if err := next.Promote(ctx); err != nil {
			return err
		}
		g.tellAll("the replica had received %s, and is the primary now", was.Received)
		return lead(ctx)
	}, nil
}

// remember tells what a primary had committed.
func (g *group) remember(ctx context.Context) error {
	committed, err := g.nodes[0].Committed(ctx)
	if err != nil {
		return fmt.Errorf("ask the primary for what it has committed: %w", err)
	}
	g.tellAll("the primary has committed %s", committed)
	return nil
}
