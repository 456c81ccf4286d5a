package topology

import (
	"context"
	"fmt"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/load"
)

// isolated cuts the node off that all shops write to. A customer of each strategy comes then, and one when the node
// knows that it is alone. It refuses both, and the other nodes go on.
func isolated(ctx context.Context, g *group) error {
	if err := g.each(ctx, func(ctx context.Context, c *cell) error { return c.sell(ctx, 2) }); err != nil {
		return err
	}
	if err := g.copied(ctx); err != nil {
		return err
	}
	node := g.nodes[0]
	if err := node.Isolate(ctx); err != nil {
		return err
	}
	g.noteAll(0, explain.IsIsolated, explain.Facts{})
	waiting := g.oneEach(ctx, func(cell int) (shop int) { return cell })
	if err := node.AwaitNotReady(ctx); err != nil {
		return err
	}
	g.noteAll(0, explain.IsNotReady, explain.Facts{})
	refused := g.oneEach(ctx, func(cell int) (shop int) { return cell + 1 })
	for i, c := range g.cells {
		<-waiting[i].done
		<-refused[i].done
		if got := refused[i].answer.Outcome; got == load.Sold && !c.of.AnswersFirst {
			c.problem = fmt.Errorf("%w: the node is alone and refuses sales, and a customer was answered with %s", errNotSeen, got)
		}
	}
	if err := g.restGoesOn(ctx); err != nil {
		return err
	}
	return g.ready(ctx)
}
