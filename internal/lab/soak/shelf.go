package soak

import (
	"context"
	"fmt"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/strategy"
)

// stockOf is the stock of each item: so small that one sells out every few seconds.
const stockOf = 100

// shelf holds items that are sold one after another, each by all of the strategies.
type shelf struct {
	strategies []strategy.Description
	items      []audit.Run
	at         int // the index of the item that is sold now
}

// arrange puts the strategies that may be mixed on one shelf, and every other one on a shelf of its
// own.
func arrange(strategies []strategy.Description) (shelves []*shelf) {
	var mixed *shelf
	for _, s := range strategies {
		switch {
		case !s.Mixable:
			shelves = append(shelves, &shelf{strategies: []strategy.Description{s}})
		case mixed == nil:
			mixed = &shelf{strategies: []strategy.Description{s}}
			shelves = append(shelves, mixed)
		default:
			mixed.strategies = append(mixed.strategies, s)
		}
	}
	return shelves
}

// takesChanges reports whether the items may be changed while they are sold.
func (s *shelf) takesChanges() bool { return s.strategies[0].Mixable }

// name is what the items are sold by.
func (s *shelf) name() string {
	if len(s.strategies) > 1 {
		return "mixed"
	}
	return s.strategies[0].Name
}

// stockUp makes more items than the load can sell, before any fault is injected.
func (s *soak) stockUp(ctx context.Context, shelf *shelf) error {
	const tail = 3 * time.Minute // for warming up, and for servers that are slow to come back
	orders := s.Rate * int((s.Duration + tail).Seconds()) * len(shelf.strategies) / len(s.Strategies)
	for i := range orders/stockOf + 2 {
		item, err := audit.Start(ctx, s.store, audit.Run{
			ID: fmt.Sprintf("soak-%d-%s-%d", s.Seed, shelf.name(), i), Strategy: shelf.name(), Scenario: "soak", InitialStock: stockOf, State: shelf.strategies[0].State,
		})
		if err != nil {
			return err
		}
		shelf.items = append(shelf.items, item)
	}
	return nil
}

// item returns the item that is sold now.
func (s *shelf) item() audit.Run { return s.items[s.at] }

// soldOut moves on to the next item, unless that has been done.
func (s *shelf) soldOut(item audit.Run) {
	if item.ID == s.item().ID && s.at < len(s.items)-1 {
		s.at++
	}
}
