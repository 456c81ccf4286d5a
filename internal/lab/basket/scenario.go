// Package basket runs cells of sales of several items: one way of taking them under one scenario.
//
// A scenario is a few customers whose baskets meet, and a play: who is held where, until what is seen.
// It attacks one basket property, so the expected verdict follows from what the way declares. Package
// trial does the same for one item and a crowd.
//
//   - scenario.go: the scenarios; play.go: what they do
//   - cell.go: one cell, from its items to its verdict
//   - customer.go: the customers, and what is seen of their sales
//   - count.go: what SQL and Redis say in the end
package basket

import (
	"context"
	"slices"
	"time"

	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/strategy/declared"
)

// Scenario is what happens to baskets. To add one, write its play, and its entry in [All].
type Scenario struct {
	Name    string
	Doc     string // one line: what happens
	Attacks declared.Property
	// Demands are what a way must have to hold, in the order in which their lack shows, with the verdict on
	// a way without it. What is attacked comes first.
	Demands []scenario.Demand

	stock []int64       // of each item
	named bool          // the order of the items' names is not that of their ids
	lease time.Duration // of the first customer's locks; 0 for those of all others
	play  func(ctx context.Context, c *cell) error
}

// All are the scenarios in the order of the tables.
var All = []Scenario{
	{
		Name: "crossed", Doc: "A has item 1 and wants item 2, B has item 2 and wants item 1",
		Attacks: declared.Crossable, Demands: []scenario.Demand{{Property: declared.Crossable, Otherwise: verdict.Left}}, stock: []int64{3, 3}, play: crossed,
	},
	{
		Name: "same-item-twice", Doc: "one basket has the same item in two lines, and there is one unit",
		Attacks: declared.AddsUp, Demands: []scenario.Demand{{Property: declared.AddsUp, Otherwise: verdict.Oversold}}, stock: []int64{1}, play: sameItemTwice,
	},
	{
		Name: "one-sold-out", Doc: "one of two items is sold out; meanwhile another customer wants the other one",
		Attacks: declared.Isolated, Demands: []scenario.Demand{{Property: declared.Isolated, Otherwise: verdict.Left}}, stock: []int64{1, 0}, play: oneSoldOut,
	},
	{
		Name: "death-between-lines", Doc: "the process dies when it has the units of one line and not yet of the other",
		Attacks: declared.Whole, Demands: []scenario.Demand{
			{Property: declared.Whole, Otherwise: verdict.Unclaimed}, {Property: declared.FreesLocks, Otherwise: verdict.Stuck},
		}, stock: []int64{1, 1}, lease: shortLease, play: deathBetweenLines,
	},
	{
		Name: "death-between-locks", Doc: "the process dies when it has one lock and not yet the other",
		Attacks: declared.FreesLocks, Demands: []scenario.Demand{{Property: declared.FreesLocks, Otherwise: verdict.Stuck}}, stock: []int64{1, 1}, lease: shortLease, play: deathBetweenLocks,
	},
	{
		Name: "first-lock-ends", Doc: "the process is paused between two locks until the lease of the first is over",
		Attacks: declared.OvertakeProof, Demands: []scenario.Demand{{Property: declared.OvertakeProof, Otherwise: verdict.Oversold}}, stock: []int64{1, 1}, lease: shortLease, play: firstLockEnds,
	},
	{
		Name: "fifty-beside-one", Doc: "a basket of fifty items, and others who want one each come in between, again and again",
		Attacks: declared.Unstarved, Demands: []scenario.Demand{{Property: declared.Unstarved, Otherwise: verdict.Left}}, stock: slices.Repeat([]int64{1000}, 50), play: fiftyBesideOne,
	},
}

// Of a way about which nothing is declared, such as a pupil's, it is not known whether its locks are in Redis.
// These scenarios find that out, and hold a customer at the first point after it.
var (
	// Meeting is the scenario crossed. A lock may also be handed to a customer who waits.
	Meeting = Scenario{
		Name: "crossed", Doc: "A has item 1 and wants item 2, B has item 2 and wants item 1",
		Attacks: declared.Crossable, Demands: []scenario.Demand{{Property: declared.Crossable, Otherwise: verdict.Left}}, stock: []int64{4, 4},
		play: func(ctx context.Context, c *cell) error { return meet(ctx, c, false) },
	}
	// Beside is Meeting with a B whose way locks in the order of the items' ids: fenced or conditional.
	Beside = Scenario{
		Name: "beside-ids", Doc: "A buys by this way what B buys by one that goes by the items' ids, and their names are in another order",
		Attacks: declared.Crossable, Demands: []scenario.Demand{{Property: declared.Crossable, Otherwise: verdict.Left}}, stock: []int64{4, 4}, named: true,
		play: func(ctx context.Context, c *cell) error { return meet(ctx, c, true) },
	}
)

// shortLease is the lease that ends in a play.
const shortLease = 500 * time.Millisecond

// ByName finds a scenario. The error lists all names.
func ByName(name string) (Scenario, error) {
	return scenario.Named("scenario of baskets", name, All, func(s Scenario) string { return s.Name })
}

// Expected returns what to expect of a way that sells baskets: the first demand that it does not meet
// decides.
func (s Scenario) Expected(of declared.Strategy) scenario.Expectation {
	decisive := func(p declared.Property) scenario.Decisive {
		return scenario.Decisive{Property: p.String(), Standing: of.Baskets.Standing(p)}
	}
	if of.Baskets.Standing(s.Attacks) == declared.NotApplicable {
		return scenario.Expectation{Verdict: verdict.Inapplicable, Because: decisive(s.Attacks)}
	}
	for _, d := range s.Demands {
		if !of.Baskets.Meets(d.Property) {
			return scenario.Expectation{Verdict: d.Otherwise, Because: decisive(d.Property)}
		}
	}
	return scenario.Expectation{Verdict: verdict.Held, Because: decisive(s.Attacks)}
}
