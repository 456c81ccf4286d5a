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

// The holder's whole shop is stopped at write, for less than its lease. So nothing but the failover
// can have admitted a second holder. A holder that only slept would learn from its watchdog that
// the lock is gone, and would not write.
var failover = Scenario{
	Name:    "failover",
	Doc:     "replication lags, a holder is in its section, the primary dies and the replica that does not know the lock takes over",
	Attacks: strategy.SurvivesDataLoss,
	Needs:   Rig,
	Plan: func(rng *rand.Rand, lease time.Duration) Plan {
		return Plan{
			// One is enough. The others are spares, in case the first is rejected as busy.
			Inject: schedule(rng, 3, 2, func() Injection {
				return Injection{Fault: labmode.Fault{Point: sale.Write, Action: labmode.Stop, For: stoppedWithinLease(lease)}, Alone: true, InTurn: true}
			}),
			Prepare:      func(_ context.Context, testbed *rig.Testbed) error { return testbed.HoldBackReplication() },
			Intervene:    func(ctx context.Context, testbed *rig.Testbed, _ Reached) error { return testbed.FailOver(ctx) },
			Intervention: "primary-lost",
		}
	},
}

// stoppedWithinLease is so short that a lease which was renewed a third of it earlier is not over.
func stoppedWithinLease(lease time.Duration) time.Duration { return lease * 6 / 10 }
