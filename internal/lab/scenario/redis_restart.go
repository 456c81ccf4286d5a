package scenario

import (
	"context"

	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/trial"
	"stocklock/internal/strategy/declared"
)

var redisRestart = trial.Scenario{
	Name:    "redis-restart",
	Doc:     "a holder is in its section, and Redis is killed and starts again without its data; of a quorum, one server",
	Attacks: declared.SurvivesDataLoss,
	Needs:   trial.Rig,
	Crowd: duringLoss(trial.Play{
		Intervene: func(ctx context.Context, testbed *rig.Testbed, _ trial.Reached) error {
			return testbed.RestartRedis(ctx)
		},
		Intervention: "redis-emptied",
	}),
}
