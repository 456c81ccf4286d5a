package soak

import (
	"context"
	"fmt"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/strategy"
)

// stockOf each item is small, so that every few seconds one sells out.
const stockOf = 100

// shelf has the items that are sold by one strategy, one after another.
type shelf struct {
	strategy strategy.Strategy
	items    []audit.Run
	at       int // the one that is sold now
}

// stockUp makes more items than the load can sell, before anything is struck.
func (s *soak) stockUp(ctx context.Context, by strategy.Strategy) ([]audit.Run, error) {
	const tail = 3 * time.Minute // for warming up, and for servers that are slow to come back
	orders := s.Rate * int((s.Duration + tail).Seconds()) / len(s.Strategies)
	items := make([]audit.Run, orders/stockOf+2)
	for i := range items {
		var err error
		items[i], err = audit.Start(ctx, s.store, audit.Run{
			ID: fmt.Sprintf("soak-%d-%s-%d", s.Seed, by.Name, i), Strategy: by.Name, Scenario: "soak", InitialStock: stockOf,
		})
		if err != nil {
			return nil, err
		}
	}
	return items, nil
}

// item is what is sold now.
func (s *shelf) item() audit.Run { return s.items[s.at] }

// soldOut puts the next item out, unless somebody has already.
func (s *shelf) soldOut(item audit.Run) {
	if item == s.item() && s.at < len(s.items)-1 {
		s.at++
	}
}
