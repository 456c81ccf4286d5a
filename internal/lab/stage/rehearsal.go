package stage

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/strategy"
)

// rehearsal is a sale that a shop process has made before the first run.
type rehearsal struct {
	pid      int
	strategy string
}

// firstStep is what each customer of a strategy sends first.
type firstStep struct {
	step string
	schedule.Request
}

// rehearse has two customers buy at once at every shop of a slot: then connections are open,
// scripts are loaded, a lock that waits for messages listens, and the first step of a sale is
// known.
func (s *Stage) rehearse(ctx context.Context, l *slot, by strategy.Description) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	rehearsing, ctx := errgroup.WithContext(ctx)
	if by.NeedsQuorum { // each server has a fifth of the lease, and connections to all are to be opened
		s.quorum.Lock()
		defer s.quorum.Unlock()
		rehearsing.SetLimit(1)
	}
	for _, shop := range l.Shops {
		this := rehearsal{shop.PID(), by.Name}
		if l.rehearsed[this] {
			continue
		}
		l.rehearsed[this] = true
		rehearsing.Go(func() error { return s.rehearseAt(ctx, shop, by) })
	}
	err := rehearsing.Wait()
	if err != nil {
		for _, shop := range l.Shops {
			delete(l.rehearsed, rehearsal{shop.PID(), by.Name})
		}
	}
	return err
}

func (s *Stage) rehearseAt(ctx context.Context, shop *rig.TestbedShop, by strategy.Description) error {
	item, err := s.newItem(ctx, by, 2)
	if err != nil {
		return err
	}
	ids := []string{fmt.Sprintf("rehearsal-%d-1", item), fmt.Sprintf("rehearsal-%d-2", item)}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var sent atomic.Int64
	defer s.source.follow(item, ids, func(r heldReport) {
		if r.Hold == 0 {
			return
		}
		if sent.Add(1) == maxRehearsal {
			cancel(fmt.Errorf("%s: two sales by %s have sent %d requests: %w", shop.Name, by.Name, maxRehearsal, ErrEndless))
		}
		s.mu.Lock()
		if _, known := s.first[by.Name]; !known {
			s.first[by.Name] = firstStep{r.Name, r.request()}
		}
		s.mu.Unlock()
		time.AfterFunc(rehearsalPace, func() { r.release(false) })
	})()
	second := make(chan string, 1)
	if by.NeedsQuorum {
		second <- "" // two that ask several servers at once can keep each other out
	} else {
		go func() { second <- s.buy(ctx, shop.URL, item, by.Name, ids[1]) }()
	}
	answer := s.buy(ctx, shop.URL, item, by.Name, ids[0])
	<-second
	if cause := context.Cause(ctx); errors.Is(cause, ErrEndless) {
		return cause
	}
	if answer != string(load.Sold) {
		return fmt.Errorf("%s: a sale by %s before the first run was answered with %s", shop.Name, by.Name, answer)
	}
	return nil
}

// rehearsalPace makes the sales of a rehearsal so slow that one of them meets the other.
const rehearsalPace = 2 * time.Millisecond

// maxRehearsal bounds the requests of a rehearsal: a lock that polls sends some hundreds.
const maxRehearsal = 2000

func (s *Stage) firstStep(of string) firstStep {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first[of]
}
