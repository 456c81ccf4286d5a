package scenario

import (
	"context"

	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/trial"
	"stocklock/internal/sale"
	"stocklock/internal/strategy/declared"
)

var clockSkew = trial.Scenario{
	Name:    "clock-skew",
	Doc:     "one shop's clock runs ahead by ten leases, while a sale of another shop is in its section",
	Attacks: declared.ClockFree,
	Needs:   trial.Rig,
	Crowd: trial.Play{
		At:            sale.Read,
		Settled:       true,
		Until:         []trial.Sight{trial.Another},
		FromFirstShop: true,
		Prepare:       shiftClock(ahead.String()),
		Restore:       shiftClock(""),
		Intervention:  "clock-ahead " + ahead.String(),
	},
}

const ahead = 10 * trial.LongLease

// shiftClock restarts the first shop with another clock.
func shiftClock(by string) func(context.Context, *rig.Testbed) error {
	return func(ctx context.Context, testbed *rig.Testbed) error {
		return testbed.Shops[0].RestartWith(ctx, "SHOP_LAB_CLOCK_SKEW", by)
	}
}
