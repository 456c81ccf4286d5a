package topology

import (
	"context"
	"fmt"

	"stocklock/internal/lab/explain"
)

// silent has the replica silent, and a customer of each strategy come. When all of them wait for it, the replica
// is heard again, and they are answered. Nothing fails over.
func silent(ctx context.Context, g *group) error {
	if _, err := g.soldAndCutOff(ctx, 2); err != nil {
		return err
	}
	waiting := g.oneEach(ctx, func(cell int) (shop int) { return cell })
	if err := g.await(ctx, "every customer is answered or waits for the replica", func() (bool, error) { return g.answeredOrWaiting(ctx, waiting) }); err != nil {
		return err
	}
	if err := g.remember(ctx); err != nil {
		return err
	}
	for _, b := range waiting {
		if b.isAnswered() && !b.cell.of.AnswersFirst {
			b.cell.problem = fmt.Errorf("%w: the customer waits for the replica, and was answered with %s", errNotSeen, b.answer.Outcome)
		}
	}
	g.link.Heal()
	g.noteAll(1, explain.ReceivesAgain, explain.Facts{})
	for _, b := range waiting {
		<-b.done
	}
	return g.copied(ctx)
}
