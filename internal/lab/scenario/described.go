package scenario

import (
	"context"
	"math/rand/v2"
	"slices"

	"golang.org/x/sync/errgroup"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/trial"
	"stocklock/internal/strategy/declared"
)

// Described is contention of a service that a file describes: see [trial.Service]. Nothing is declared of it, and it is
// expected to hold.
var Described = trial.Scenario{
	Name: contention.Name, Doc: contention.Doc, Group: trial.Described, Attacks: declared.Exclusive, Demands: []trial.Demand{}, Stock: []int64{20}, Few: contend,
}

// Who buys of a service: enough for most read-then-writes to show.
const (
	DescribedCustomers = 80
	describedAtOnce    = 16
	ordinaryCustomers  = 3 // who come afterwards, one by one
)

// contend has many customers buy at once, each at the process that the seed says. Where units are left then, others who
// come one by one show whether they can be had.
func contend(ctx context.Context, g *trial.Group) error {
	s, random := g.Shows[0], rand.New(rand.NewPCG(g.Seed, 1))
	item, units := s.Items[0].ItemID, s.Items[0].InitialStock
	var buying errgroup.Group
	buying.SetLimit(describedAtOnce)
	for range DescribedCustomers {
		w := trial.Wish{Shop: random.IntN(len(g.Shops)), Beside: true} // the unit that kept it out can come back
		buying.Go(func() error {
			<-s.Ask(ctx, w).Done()
			return ctx.Err()
		})
	}
	if err := buying.Wait(); err != nil {
		return err
	}
	if err := s.Service.Settle(ctx, item, units); err != nil {
		return err
	}
	left, _, err := s.Service.Count(ctx, item)
	if err != nil || left <= 0 {
		return err
	}
	var got []load.Outcome
	for i := range ordinaryCustomers {
		got = append(got, s.Buy(ctx, i%len(g.Shops), 1))
	}
	if err := s.Service.Settle(ctx, item, units); err != nil {
		return err
	}
	left, _, err = s.Service.Count(ctx, item)
	refused := func(o load.Outcome) bool { return o != load.SoldOut } // which, with units left, is a verdict of its own
	s.Stuck = left > 0 && !slices.Contains(got, load.Sold) && slices.ContainsFunc(got, refused)
	return err
}
