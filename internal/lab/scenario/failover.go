package scenario

import (
	"context"
	"math/rand/v2"
	"time"

	"stocklock/internal/lab/rig"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy"
)

// The holder sleeps at write, after its last look, and for less than its lease:
// so nothing but the failover can have admitted a second holder, and a holder
// that would notice at its next look has none left.
var failover = Scenario{
	Name:    "failover",
	Doc:     "replication lags, a holder is in its section, the primary dies and the replica that does not know the lock takes over",
	Attacks: strategy.SurvivesFailover,
	Needs:   Rig,
	Plan: func(rng *rand.Rand, lease time.Duration) Plan {
		return Plan{
			// The first that comes to its point does it; the others are there in case it was told busy.
			Inject: schedule(rng, 3, 2, func() Injection {
				return Injection{Fault: labmode.Fault{Point: sale.Write, Action: labmode.Sleep, For: lease * 7 / 10}}
			}),
			Prepare:      func(_ context.Context, testbed *rig.Testbed) error { return testbed.HoldBackReplication() },
			Intervene:    func(ctx context.Context, testbed *rig.Testbed, _ int) error { return testbed.FailOver(ctx) },
			Intervention: "primary killed, replica promoted",
		}
	},
}
