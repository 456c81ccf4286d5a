package baskets

import (
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/sale"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/strategy/ladder"
	"stocklock/internal/strategy/strategytest"
)

// TestACustomerReleasesOnlyWhatItHas: who is kept out from its last lock releases those before, and says so
// only if there are any. The lock of somebody else stays.
func TestACustomerReleasesOnlyWhatItHas(t *testing.T) {
	for _, way := range []ladder.Rung{locksUnsorted, locksSorted, locksParallel, locksAllOrNone, lockForAll} {
		t.Run(way.Name, func(t *testing.T) {
			d := strategytest.Deps(t)
			s := newScene(t, way, d, 1, 1)
			first, last := sale.Key(s.items[0].ID), sale.Key(s.items[1].ID)
			if len(way.Declared.State.Locks) > 0 {
				last = way.Declared.State.Locks[0]
			}
			if err := d.Redis.Set(t.Context(), last, "somebody", 0).Err(); err != nil {
				t.Fatal(err)
			}
			c := s.buy(soon(d.Options), 0, 1)
			if !errors.Is(c.err, strategy.ErrBusy) {
				t.Errorf("a customer who was kept out: %v", c.err)
			}
			none := way.Declared.Baskets.Standing(declared.OvertakeProof) == declared.NotApplicable // it has all at once
			if c.has(sale.Acquired) == none || c.has(sale.Releasing) == none || c.has(sale.Released) == none {
				t.Errorf("it acquired %v, was releasing %v, released %v", c.has(sale.Acquired), c.has(sale.Releasing), c.has(sale.Released))
			}
			if holder, err := d.Redis.Get(t.Context(), last).Result(); err != nil || holder != "somebody" {
				t.Errorf("the lock of somebody else is %q, %v", holder, err)
			}
			if holder, err := d.Redis.Get(t.Context(), first).Result(); !errors.Is(err, redis.Nil) {
				t.Errorf("its first lock is %q, %v", holder, err)
			}
		})
	}
}
