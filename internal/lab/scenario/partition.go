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

var partition = Scenario{
	Name:    "partition",
	Doc:     "one shop silently loses Redis, but not MySQL, while it works for two leases",
	Attacks: strategy.LossAware,
	Needs:   Rig,
	Plan: func(rng *rand.Rand, lease time.Duration) Plan {
		return Plan{
			Inject: schedule(rng, 2, 12, func() Injection {
				return Injection{Fault: labmode.Fault{Point: sale.Read, Action: labmode.Sleep, For: 2 * lease}, Alone: true}
			}),
			Intervene: func(_ context.Context, testbed *rig.Testbed, shop int) error { return testbed.Shops[shop].CutOff() },
			Relieve: func(_ context.Context, testbed *rig.Testbed, shop int) error {
				testbed.Shops[shop].Reconnect()
				return nil
			},
			Intervention: "redis-cut",
		}
	},
}
