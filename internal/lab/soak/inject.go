package soak

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// injectAll injects one episode after another until the time is over, and measures the recoveries.
func (s *soak) injectAll(ctx context.Context) ([]Recovery, error) {
	plan := newSchedule(s.Seed, s.Shops, chosen(s.Faults))
	var all recoveries
	for n := 1; time.Since(s.began) < s.Duration; n++ {
		e := plan.next()
		pause(ctx, e.calm)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		s.say("%d: %s", n, e)
		s.customers.forget()
		ended, err := s.inject(ctx, e)
		if err != nil {
			return nil, fmt.Errorf("episode %d: %w", n, err)
		}
		took, missing := s.recovery(ctx, ended)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if len(missing) > 0 {
			s.say("%d: after %s still nothing sold: %s", n, took.Round(time.Second), strings.Join(missing, ", "))
		}
		all.add(e, took, len(missing) == 0)
	}
	return all, nil
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
	var mu sync.Mutex
	injecting, ctx := errgroup.WithContext(ctx)
	for _, f := range e.faults {
		injecting.Go(func() error {
			pause(ctx, f.after)
			ended, err := f.do(ctx, s, f)
			if err != nil {
				return fmt.Errorf("%s: %w", f, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if ended.After(last) {
				last = ended
			}
			return nil
		})
	}
	err = injecting.Wait()
	return last, err
}

// recovery waits until every shop has sold by every strategy since the faults ended, and returns
// how long that took. It gives up after three times what is allowed, and names what is missing.
func (s *soak) recovery(ctx context.Context, ended time.Time) (took time.Duration, missing []string) {
	for {
		took, missing = s.customers.firstSales(ended)
		if len(missing) == 0 || ctx.Err() != nil || time.Since(ended) > 3*s.RecoverWithin {
			return took, missing
		}
		pause(ctx, 20*time.Millisecond)
	}
}
