package trial

import (
	"context"
	"sync"
	"time"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/testserver"
)

// usage is what the sales cost the servers, from the beginning of the attack to the first
// answer that said sold out.
type usage struct {
	count func() (counts, error) // nil where it cannot be known
	begin counts
	sold  int64 // 0 until it is stopped

	background *sync.WaitGroup // what must be waited for before the rest is looked at
	end        counts
	err        error
}

// counts are reads that Redis made from its clients' connections, one for each
// request or pipeline, and statements that the database was sent.
type counts struct{ redis, database int64 }

const usagePatience = 5 * time.Second

// startUsage counts under contention alone, where nothing else goes on, and on a
// bench that has the servers to itself.
func (a *attack) startUsage(ctx context.Context) *usage {
	u := &usage{background: &a.background}
	if !a.bench.Alone || a.cell.Scenario.Attacks != scenario.All()[0].Attacks || a.bench.Testbed.Redis() == nil {
		return u
	}
	servers := append([]*testserver.Redis{a.bench.Testbed.Redis()}, a.bench.Testbed.Quorum...)
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
		c.database, err = audit.Statements(ctx, a.bench.Store)
		return c, err
	}
	u.begin, u.err = u.count()
	return u
}

// stop counts in the background, once. The caller holds the attack's mutex.
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

// perSale says what one sale cost, or false where that is not known.
func (u *usage) perSale() (c Cost, ok bool) {
	if u.count == nil || u.err != nil || u.sold == 0 {
		return Cost{}, false
	}
	each := func(n int64) float64 { return round(float64(n)/float64(u.sold), 1) }
	return Cost{Redis: each(u.end.redis - u.begin.redis), Database: each(u.end.database - u.begin.database)}, true
}
