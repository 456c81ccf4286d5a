package scenario

import (
	"context"
	"fmt"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/trial"
	"stocklock/internal/testserver"
)

// failOver sells, keeps the copies behind, sells more, kills the primary, has another server take over, and
// sells what is left. Every strategy has a customer on the way when the primary dies, and one who comes when
// nobody answers.
func failOver(ctx context.Context, g *trial.Group) error {
	takeOver, err := soldAndCutOff(ctx, g, 2)
	if err != nil {
		return err
	}
	waiting := g.OneEach(ctx, func(cell int) (shop int) { return cell })
	if err := g.Await(ctx, "every customer is answered or waits for a copy", func() (bool, error) { return answeredOrWaiting(ctx, g, waiting) }); err != nil {
		return err
	}
	if g.Database.Link != nil {
		if err := remember(ctx, g); err != nil {
			return err
		}
	}
	if err := g.Database.Nodes[0].Kill(); err != nil {
		return err
	}
	g.Note(0, explain.IsKilled, explain.Facts{})
	during := g.OneEach(ctx, func(cell int) (shop int) { return cell + 1 })
	for i := range g.Shows {
		<-waiting[i].Done()
		<-during[i].Done()
	}
	if err := takeOver(ctx); err != nil {
		return err
	}
	return g.ShopsReady(ctx)
}

// answeredOrWaiting reports whether each of these customers has an answer, or has a transaction that waits for
// the replica.
func answeredOrWaiting(ctx context.Context, g *trial.Group, all []*trial.Customer) (bool, error) {
	unanswered := 0
	for _, b := range all {
		if !b.Answered() {
			unanswered++
		}
	}
	if unanswered == 0 || g.Scenario.Topology.Waits != testserver.Forever {
		return unanswered == 0, nil
	}
	commits, err := g.Database.Nodes[0].WaitingCommits(ctx)
	if err != nil {
		return false, err
	}
	for i, b := range all {
		if b.Answered() && g.Shows[i].Of.AnswersFirst {
			commits-- // it may be the order of that one
		}
	}
	return commits >= unanswered, nil
}

// soldAndCutOff sells so many units that every server has, and is [cutOff] then.
func soldAndCutOff(ctx context.Context, g *trial.Group, units int) (takeOver func(context.Context) error, err error) {
	if err := g.Each(ctx, func(ctx context.Context, s *trial.Show) error { return sell(ctx, s, units) }); err != nil {
		return nil, err
	}
	if err := g.Database.Copied(ctx); err != nil {
		return nil, err
	}
	return cutOff(ctx, g)
}

// cutOff keeps what is committed from now on from the server that is going to take over, as far as the topology
// lets it. It returns how that takes over from a dead primary.
func cutOff(ctx context.Context, g *trial.Group) (takeOver func(context.Context) error, err error) {
	if len(g.Database.Nodes) == 1 {
		return func(ctx context.Context) error {
			g.Note(0, explain.IsRestarted, explain.Facts{})
			return g.Database.Nodes[0].Restart(ctx)
		}, nil
	}
	if g.Database.Galera {
		release, err := g.Database.Nodes[1].HoldApplying(ctx)
		if err != nil {
			return nil, err
		}
		g.Note(1, explain.IsBehind, explain.Facts{})
		return func(ctx context.Context) error {
			if err := release(); err != nil {
				return err
			}
			return restGoesOn(ctx, g)
		}, nil
	}
	if err := g.Database.Link.Cut(); err != nil {
		return nil, err
	}
	g.Note(1, explain.IsCut, explain.Facts{})
	return func(ctx context.Context) error { return promote(ctx, g) }, nil
}

// restGoesOn waits until the nodes without the first are a cluster, and leads the shops there.
func restGoesOn(ctx context.Context, g *trial.Group) error {
	rest := len(g.Database.Nodes) - 1
	if err := g.Database.Nodes[1].AwaitMembers(ctx, rest); err != nil {
		return err
	}
	g.Note(1, explain.HasMembers, explain.Facts{Count: rest})
	return leadAll(g, 1)
}

// promote makes the replica the primary, with what it has received, and leads the shops there.
func promote(ctx context.Context, g *trial.Group) error {
	if err := promoted(ctx, g); err != nil {
		return err
	}
	return leadAll(g, 1)
}

func promoted(ctx context.Context, g *trial.Group) error {
	next := g.Database.Nodes[1]
	was, err := next.Replication(ctx)
	if err != nil {
		return err
	}
	if err := next.Promote(ctx); err != nil {
		return err
	}
	g.Note(1, explain.IsPromoted, explain.Facts{GTIDs: was.Received})
	return nil
}

// leadAll leads all shops to a server, whose orders count from now on.
func leadAll(g *trial.Group, node int) error {
	g.Database.Lead(node)
	return g.TookOver(node, explain.IsFound)
}

// silent has the replica silent, and a customer of each strategy come. When all of them wait for it, the replica
// is heard again, and they are answered. Nothing fails over.
func silent(ctx context.Context, g *trial.Group) error {
	if _, err := soldAndCutOff(ctx, g, 2); err != nil {
		return err
	}
	waiting := g.OneEach(ctx, func(cell int) (shop int) { return cell })
	if err := g.Await(ctx, "every customer is answered or waits for the replica", func() (bool, error) { return answeredOrWaiting(ctx, g, waiting) }); err != nil {
		return err
	}
	if err := remember(ctx, g); err != nil {
		return err
	}
	for i, b := range waiting {
		if s := g.Shows[i]; b.Answered() && !s.Of.AnswersFirst {
			s.Fail(fmt.Errorf("%w: the customer waits for the replica, and was answered with %s", trial.ErrNotSeen, b.Got()))
		}
	}
	g.Database.Link.Heal()
	g.Note(1, explain.ReceivesAgain, explain.Facts{})
	for _, b := range waiting {
		<-b.Done()
	}
	return g.Database.Copied(ctx)
}

// isolated cuts the node off that all shops write to. A customer of each strategy comes then, and one when the node
// knows that it is alone. It refuses both, and the other nodes go on.
func isolated(ctx context.Context, g *trial.Group) error {
	if err := g.Each(ctx, func(ctx context.Context, s *trial.Show) error { return sell(ctx, s, 2) }); err != nil {
		return err
	}
	if err := g.Database.Copied(ctx); err != nil {
		return err
	}
	node := g.Database.Nodes[0]
	if err := node.Isolate(ctx); err != nil {
		return err
	}
	g.Note(0, explain.IsIsolated, explain.Facts{})
	waiting := g.OneEach(ctx, func(cell int) (shop int) { return cell })
	if err := node.AwaitNotReady(ctx); err != nil {
		return err
	}
	g.Note(0, explain.IsNotReady, explain.Facts{})
	refused := g.OneEach(ctx, func(cell int) (shop int) { return cell + 1 })
	for i, s := range g.Shows {
		<-waiting[i].Done()
		<-refused[i].Done()
		if got := refused[i].Got(); got == load.Sold && !s.Of.AnswersFirst {
			s.Fail(fmt.Errorf("%w: the node is alone and refuses sales, and a customer was answered with %s", trial.ErrNotSeen, got))
		}
	}
	if err := restGoesOn(ctx, g); err != nil {
		return err
	}
	return g.ShopsReady(ctx)
}
