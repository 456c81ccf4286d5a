package trial

import (
	"context"
	"sync"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/testserver"
)

// usage is what the sales cost the servers, from the beginning of the attack to the first sold-out
// answer. One goroutine at a time uses it.
type usage struct {
	count func() (counts, error) // nil where it cannot be known
	begin counts
	sold  int64 // 0 until stopped

	background *sync.WaitGroup // to wait for before the rest is read
	end        counts
	err        error
}

// counts are the reads of Redis from its clients' connections, one for each request or pipeline,
// and the statements that the database got.
type counts struct{ redis, database int64 }

const usagePatience = 5 * time.Second

// startUsage counts only where nothing but sales goes on, and on a bench that has the servers to
// itself.
func (a *attack) startUsage(ctx context.Context) *usage {
	u := &usage{background: &a.background}
	if !a.Alone || !a.Scenario.Comparable || a.Testbed.Redis() == nil {
		return u
	}
	servers := append([]*testserver.Redis{a.Testbed.Redis()}, a.Testbed.Quorum...)
	u.count = func() (c counts, err error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), usagePatience)
		defer cancel()
		for _, server := range servers {
			reads, err := server.Reads(ctx)
			if err != nil {
				return c, err
			}
			c.redis += reads
		}
		c.database, err = audit.Statements(ctx, a.Store)
		c.database -= a.looks.Load()
		return c, err
	}
	a.deadlocks = a.countDeadlocks(ctx)
	u.begin, u.err = u.count()
	return u
}

// countDeadlocks returns what says how many the database has resolved since: nil where that is not known.
func (g *Group) countDeadlocks(ctx context.Context) (since func() *int64) {
	ask := func() (int64, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), usagePatience)
		defer cancel()
		return audit.Deadlocks(ctx, g.Store)
	}
	if !g.Alone {
		return func() *int64 { return nil }
	}
	before, unknown := ask()
	return func() *int64 {
		now, err := ask()
		if unknown != nil || err != nil { // a user without the right to ask
			return nil
		}
		return new(now - before)
	}
}

// stop counts in the background, the first time that it is called after a sale.
func (u *usage) stop(sold int64) {
	if u.count == nil || u.sold > 0 {
		return
	}
	u.sold = sold
	u.background.Go(func() {
		var err error
		if u.end, err = u.count(); u.err == nil {
			u.err = err
		}
	})
}

// perSale returns what one sale cost, nil where that is not known.
func (u *usage) perSale() *Cost {
	if u.count == nil || u.err != nil || u.sold == 0 {
		return nil
	}
	each := func(n int64) float64 { return round(float64(n)/float64(u.sold), 1) }
	return &Cost{Redis: each(u.end.redis - u.begin.redis), Database: each(u.end.database - u.begin.database)}
}
