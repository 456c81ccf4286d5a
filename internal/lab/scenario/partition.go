package scenario

import (
	"context"
	"math/rand/v2"
	"time"

	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy"
)

var partition = Scenario{
	Name:    "partition",
	Doc:     "one shop silently loses Redis, but not MySQL, while it works for two leases",
	Attacks: strategy.LossAware,
	Demands: []Demand{{strategy.Exclusive, verdict.Oversold}, {strategy.Recovers, verdict.Stuck}, {strategy.LossAware, verdict.Oversold}},
	Needs:   Rig,
	Plan: func(rng *rand.Rand, lease time.Duration) Plan {
		return Plan{
			Inject: schedule(rng, 2, 12, func() Injection {
				return Injection{Fault: labmode.Fault{Point: sale.Read, Action: labmode.Sleep, For: 2 * lease}, Alone: true}
			}),
			Intervene: func(_ context.Context, testbed *rig.Testbed, at Reached) error {
				return testbed.Shops[at.Shop].CutOff()
			},
			Relieve: func(_ context.Context, testbed *rig.Testbed, at Reached) error {
				testbed.Shops[at.Shop].Reconnect()
				return nil
			},
			Intervention: "redis-cut",
		}
	},
}
