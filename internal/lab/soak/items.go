package soak

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/stock"
	"stocklock/internal/strategy/declared"
)

const (
	// stockOf is the stock of each item: so small that one sells out every few seconds.
	stockOf = 100
	// mostLines is how many items a basket has at most.
	mostLines = 5
	// limit is how many units of an item a subject may have. New subjects buy what the others may not.
	limit = 5
)

// items are sold by the same strategies.
type items struct {
	strategies []declared.Strategy
	all        []audit.Run
	inTurn     bool // all are on sale at once; otherwise all customers buy the current item
	popularity Popularity
	current    int  // its index
	ahead      int  // how many items behind the current one baskets may have
	soldOut    bool // the last one is
	replayed   int  // customers whose 201 answered a repeat
}

// arrange has the strategies that may be mixed sell the same items, and every other one items of its
// own.
func arrange(strategies []declared.Strategy) (all []*items) {
	for _, s := range strategies {
		at := slices.IndexFunc(all, func(i *items) bool { return s.Mixable && i.takeChanges() })
		if at < 0 {
			at, all = len(all), append(all, &items{})
		}
		all[at].strategies = append(all[at].strategies, s)
	}
	return all
}

// sellBaskets reports whether all of the strategies sell several items in one sale.
func sellBaskets(all []declared.Strategy) bool {
	return !slices.ContainsFunc(all, func(s declared.Strategy) bool { return s.Baskets == nil })
}

// takeChanges reports whether the items may be changed while they are sold.
func (i *items) takeChanges() bool { return i.strategies[0].Mixable }

// cancellable reports whether the shop cancels an order: it does not of the strategies of the lab.
func (i *items) cancellable(order stock.Order) bool {
	return slices.ContainsFunc(i.strategies, func(s declared.Strategy) bool { return s.Production && s.Name == order.Strategy })
}

func (i *items) name() string {
	if len(i.strategies) > 1 {
		return "mixed"
	}
	return i.strategies[0].Name
}

// sold returns the items that were on sale until now.
func (i *items) sold() []audit.Run {
	if i.inTurn {
		return i.all
	}
	return i.all[:i.current+i.ahead+1]
}

// basket returns the items that the n-th customer buys.
func (i *items) basket(n, size int) []audit.Run {
	if i.popularity.drawn {
		return i.popularity.draw(n, size, i.all)
	}
	if i.inTurn {
		basket := make([]audit.Run, size)
		for line := range basket {
			basket[line] = i.all[(n*size+line)%len(i.all)]
		}
		return basket
	}
	return i.all[i.current : i.current+size]
}

// next moves on from an item that is sold out, unless that has been done.
func (i *items) next(from audit.Run) {
	switch {
	case from.ID != i.all[i.current].ID:
	case i.current == len(i.all)-1-i.ahead:
		i.soldOut = true
	default:
		i.current++
	}
}

// stockUp makes more items than the load can sell, before any fault is injected. A soak of kills has
// one item.
func (s *soak) stockUp(ctx context.Context) error {
	// For warming up, for servers that are slow to come back, and for the longest wait of the last episode.
	tail := 3*time.Minute + 3*s.RecoverWithin
	s.items = arrange(s.Strategies)
	s.customers = newCustomers(s.Seed, s.testbed.Shops, s.items)
	for _, of := range s.items {
		number, units := 1, s.Sales
		if !s.ofKills() {
			orders := s.Rate * int((s.Duration + tail).Seconds()) * len(of.strategies) / len(s.Strategies)
			s.customers.endless, s.customers.final = true, underWay
			if sellBaskets(of.strategies) {
				of.ahead = mostLines - 1
			}
			number, units = orders*(of.ahead+1)/stockOf+2+of.ahead, stockOf
			s.say("making %d items for %s", number, of.name())
			if of.takeChanges() {
				s.staff = &staff{soak: s, items: of}
			}
		}
		if err := s.create(ctx, of, number, units); err != nil {
			return err
		}
	}
	return nil
}

// create makes so many items with so many units each.
func (s *soak) create(ctx context.Context, of *items, number int, units int64) error {
	for i := range number {
		of.all = append(of.all, audit.Run{
			ID:       fmt.Sprintf("soak-%d-%s-%d", s.Seed, of.name(), i),
			Strategy: of.name(), Scenario: "soak", InitialStock: units, State: of.strategies[0].State,
		})
	}
	return audit.StartAll(ctx, s.store, of.all)
}

// Popularity says which items customers buy. The zero value has each item in turn.
type Popularity struct {
	drawn    bool
	exponent float64
}

// The ways to draw the items of an order. No order has an item twice.
var (
	// Uniform draws each item with the same chance.
	Uniform = Popularity{drawn: true}
	// Zipf draws the r-th item with a chance in proportion to 1/r.
	Zipf = Popularity{drawn: true, exponent: 1}
)

// draw returns the items that the n-th customer buys, always the same.
func (p Popularity) draw(n, size int, all []audit.Run) []audit.Run {
	rng := rand.New(rand.NewPCG(uint64(n), uint64(size)))
	weights, sum := make([]float64, len(all)), 0.0
	for i := range weights {
		weights[i] = math.Pow(float64(i+1), -p.exponent)
		sum += weights[i]
	}
	basket := make([]audit.Run, 0, size)
	for len(basket) < size {
		at, drawn := 0, rng.Float64()*sum
		for ; at < len(all)-1 && drawn >= weights[at]; at++ {
			drawn -= weights[at]
		}
		if weights[at] == 0 {
			continue // rounding led to an item that is in the basket
		}
		sum -= weights[at]
		weights[at] = 0
		basket = append(basket, all[at])
	}
	return basket
}
