package scenario

import (
	"context"
	"math/rand/v2"
	"time"

	"stocklock/internal/lab/rig"
	"stocklock/internal/strategy"
)

// The holder is stopped, so that nothing touches its lock, which becomes the key that Redis has not
// used for the longest time.
var eviction = Scenario{
	Name:    "eviction",
	Doc:     "a holder is in its section, and Redis under allkeys-lru runs out of memory and evicts its lock; of a quorum, one server",
	Attacks: strategy.SurvivesDataLoss,
	Needs:   Rig,
	Plan: func(rng *rand.Rand, lease time.Duration) Plan {
		// Once is enough. A later eviction would come near the end of a lease.
		evicted := make(chan struct{}, 1)
		return Plan{
			Inject: stopHolders(rng, lease),
			Intervene: func(ctx context.Context, testbed *rig.Testbed, at Reached) error {
				select {
				case evicted <- struct{}{}:
					return testbed.Evict(ctx, at.Keys)
				default:
					return nil
				}
			},
			Intervention: "memory-full",
		}
	},
}
