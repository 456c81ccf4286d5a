package scenario

import (
	"context"

	"stocklock/internal/lab/rig"
	"stocklock/internal/strategy/declared"
)

var redisRestart = Scenario{
	Name:    "redis-restart",
	Doc:     "a holder is in its section, and Redis is killed and starts again without its data; of a quorum, one server",
	Attacks: declared.SurvivesDataLoss,
	Needs:   Rig,
	Play: duringLoss(Play{
		Intervene:    func(ctx context.Context, testbed *rig.Testbed, _ Reached) error { return testbed.RestartRedis(ctx) },
		Intervention: "redis-emptied",
	}),
}
