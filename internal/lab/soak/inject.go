package soak

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"stocklock/internal/lab/seen"
)

// injectAll injects one episode after another until the time is over or selling ends, and measures
// the recoveries.
func (s *soak) injectAll(ctx, selling context.Context) (recoveries, error) {
	next := newSchedule(s.Seed, s.Shops, chosen(s.Faults)).next
	if s.ofKills() {
		next = s.killsInTurn()
	}
	all := recoveries{}
	for n := 1; s.ofKills() || time.Since(s.began) < s.Duration || (&Report{Recoveries: all}).faults() < s.least; n++ {
		e := next()
		if seen.Pause(selling, e.calm) != nil {
			break
		}
		if err := s.revive(ctx); err != nil {
			return nil, err
		}
		s.say("%d: %s · %d sold", n, e, s.customers.forget())
		ended, err := s.inject(ctx, e)
		if err != nil {
			return nil, fmt.Errorf("episode %d: %w", n, err)
		}
		if s.ofKills() {
			all.add(e, 0, true)
			continue
		}
		took, missing := s.recovery(selling, ended)
		if selling.Err() != nil {
			break
		}
		if len(missing) > 0 {
			s.say("%d: after %s still nothing sold: %s", n, took.Round(time.Second), strings.Join(missing, ", "))
		}
		all.add(e, took, len(missing) == 0)
	}
	return all, nil
}

// killsInTurn makes episodes in which one shop after the other is killed, at even times and whether
// or not the shops have recovered.
func (s *soak) killsInTurn() func() episode {
	due, shop := s.began, -1
	return func() episode {
		due, shop = due.Add(max(s.Every, time.Since(due))), (shop+1)%s.Shops
		return episode{time.Until(due), []fault{{kind: &kinds[0], shop: shop}}}
	}
}

func (e episode) String() string {
	words := make([]string, len(e.faults))
	for i, f := range e.faults {
		words[i] = fmt.Sprintf("+%s %s", f.after, f)
	}
	return strings.Join(words, " · ")
}

// inject injects the faults of one episode. It returns the moment at which the last one ended.
func (s *soak) inject(ctx context.Context, e episode) (last time.Time, err error) {
	ended := make([]time.Time, len(e.faults))
	injecting, ctx := errgroup.WithContext(ctx)
	for i, f := range e.faults {
		injecting.Go(func() (err error) {
			_ = seen.Pause(ctx, f.after)
			ended[i], err = f.do(ctx, s, f)
			if err != nil && f.onShop && !f.ends && !s.testbed.Shops[f.shop].Alive() {
				ended[i], err = time.Now(), errMissed // the shop ended by itself: the next episode finds that
			}
			if e.faults[i].missed = errors.Is(err, errMissed); err != nil && !e.faults[i].missed {
				return fmt.Errorf("%s: %w", f, err)
			}
			return nil
		})
	}
	err = injecting.Wait()
	return slices.MaxFunc(ended, time.Time.Compare), err
}

// recovery waits until every shop has sold by every strategy since the faults ended, and returns
// how long that took. It gives up after three times what is allowed, and names what is missing.
func (s *soak) recovery(ctx context.Context, ended time.Time) (took time.Duration, missing []string) {
	_, _ = seen.Until(ctx, 20*time.Millisecond, func() (bool, error) {
		took, missing = s.customers.firstSales(ended)
		return len(missing) == 0 || time.Since(ended) > 3*s.RecoverWithin, nil
	})
	return took, missing
}
