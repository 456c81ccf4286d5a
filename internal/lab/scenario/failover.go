package scenario

import (
	"context"

	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/trial"
	"stocklock/internal/strategy/declared"
)

var failover = trial.Scenario{
	Name:    "failover",
	Doc:     "replication lags, a holder is in its section, the primary dies and the replica that does not know the lock takes over",
	Attacks: declared.SurvivesDataLoss,
	Needs:   trial.Rig,
	Crowd: duringLoss(trial.Play{
		Prepare:      func(_ context.Context, testbed *rig.Testbed) error { return testbed.HoldBackReplication() },
		Intervene:    func(ctx context.Context, testbed *rig.Testbed, _ trial.Reached) error { return testbed.FailOver(ctx) },
		Intervention: "primary-lost",
	}),
}
