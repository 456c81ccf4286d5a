package scenario

import (
	"context"

	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/sale"
	"stocklock/internal/strategy/declared"
)

var partition = Scenario{
	Name:    "partition",
	Doc:     "one shop silently loses Redis, but not MySQL, and its work takes longer than the lease",
	Attacks: declared.LossAware,
	Demands: []Demand{{Property: declared.Exclusive, Otherwise: verdict.Oversold}, {Property: declared.Recovers, Otherwise: verdict.Stuck, Counted: verdict.Held}, {Property: declared.LossAware, Otherwise: verdict.Oversold}},
	Needs:   Rig,
	Play: Play{
		At:    sale.Read,
		Until: []Sight{LeaseOver, Another},
		Intervene: func(_ context.Context, testbed *rig.Testbed, at Reached) error {
			return testbed.Shops[at.Shop].CutOff()
		},
		Relieve: func(_ context.Context, testbed *rig.Testbed, at Reached) error {
			testbed.Shops[at.Shop].Reconnect()
			return nil
		},
		Intervention: "redis-cut",
	},
}
