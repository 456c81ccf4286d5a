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
			Cargo: schedule(rng, 2, 12, func() Cargo {
				return Cargo{Fault: labmode.Fault{Point: sale.Read, Action: labmode.Sleep, For: 2 * lease}, Alone: true}
			}),
			Strike: func(_ context.Context, site *rig.Site, shop int) error { return site.Shops[shop].CutOff() },
			Relieve: func(_ context.Context, site *rig.Site, shop int) error {
				site.Shops[shop].Reconnect()
				return nil
			},
			Deed: "cut off from Redis",
		}
	},
}
