package scenario

import (
	"context"

	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/sale"
	"stocklock/internal/strategy/declared"
)

var partition = trial.Scenario{
	Name:    "partition",
	Doc:     "one shop silently loses Redis, but not MySQL, and its work takes longer than the lease",
	Attacks: declared.LossAware,
	Demands: []trial.Demand{{Property: declared.Exclusive, Otherwise: verdict.Oversold}, {Property: declared.Recovers, Otherwise: verdict.Stuck, Counted: verdict.Held}, {Property: declared.LossAware, Otherwise: verdict.Oversold}},
	Needs:   trial.Rig,
	Crowd: trial.Play{
		At:    sale.Read,
		Until: []trial.Sight{trial.LeaseOver, trial.Another},
		Intervene: func(_ context.Context, testbed *rig.Testbed, at trial.Reached) error {
			return testbed.Shops[at.Shop].CutOff()
		},
		Relieve: func(_ context.Context, testbed *rig.Testbed, at trial.Reached) error {
			testbed.Shops[at.Shop].Reconnect()
			return nil
		},
		Intervention: "redis-cut",
	},
}
