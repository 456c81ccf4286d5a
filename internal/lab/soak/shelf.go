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

// shelf holds the items that one strategy sells, one after another.
type shelf struct {
	strategy strategy.Description
	items    []audit.Run
	at       int // the index of the item that is sold now
}

// stockUp makes more items than the load can sell, before any fault is injected.
func (s *soak) stockUp(ctx context.Context, by strategy.Description) ([]audit.Run, error) {
	const tail = 3 * time.Minute // for warming up, and for servers that are slow to come back
	orders := s.Rate * int((s.Duration + tail).Seconds()) / len(s.Strategies)
	items := make([]audit.Run, orders/stockOf+2)
	for i := range items {
		var err error
		items[i], err = audit.Start(ctx, s.store, audit.Run{
			ID: fmt.Sprintf("soak-%d-%s-%d", s.Seed, by.Name, i), Strategy: by.Name, Scenario: "soak", InitialStock: stockOf, State: by.State,
		})
		if err != nil {
			return nil, err
		}
	}
	return items, nil
}

// item returns the item that is sold now.
func (s *shelf) item() audit.Run { return s.items[s.at] }

// soldOut moves on to the next item, unless that has been done.
func (s *shelf) soldOut(item audit.Run) {
	if item.ID == s.item().ID && s.at < len(s.items)-1 {
		s.at++
	}
}
