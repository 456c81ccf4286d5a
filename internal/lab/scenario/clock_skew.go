package scenario

import (
	"context"
	"math/rand/v2"
	"time"

	"stocklock/internal/lab/rig"
	"stocklock/internal/strategy"
)

var clockSkew = Scenario{
	Name:    "clock-skew",
	Doc:     "one shop's clock runs ahead by ten leases",
	Attacks: strategy.ClockFree,
	Needs:   Rig,
	Plan: func(rng *rand.Rand, lease time.Duration) Plan {
		const setting = "SHOP_LAB_CLOCK_SKEW"
		shift := func(value string) func(context.Context, *rig.Testbed) error {
			return func(ctx context.Context, testbed *rig.Testbed) error {
				return testbed.Shops[0].RestartWith(ctx, setting, value)
			}
		}
		return Plan{Prepare: shift((10 * lease).String()), Restore: shift(""), Intervention: "clock-ahead " + (10 * lease).String()}
	},
}
