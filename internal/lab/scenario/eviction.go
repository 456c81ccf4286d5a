package scenario

import (
	"context"

	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/trial"
	"stocklock/internal/sale"
	"stocklock/internal/strategy/declared"
)

// The shop of the holder is stopped, so that nothing touches its lock, which becomes the key that
// Redis has not used for the longest time.
var eviction = trial.Scenario{
	Name:    "eviction",
	Doc:     "a holder is in its section, and Redis under allkeys-lru runs out of memory and evicts its lock; of a quorum, one server",
	Attacks: declared.SurvivesDataLoss,
	Needs:   trial.Rig,
	Crowd: duringLoss(trial.Play{
		Intervene: func(ctx context.Context, testbed *rig.Testbed, at trial.Reached) error {
			return testbed.Evict(ctx, at.Keys)
		},
		Intervention: "memory-full",
	}),
}

// duringLoss stops the holder's whole shop at write, while Redis loses the lock. A holder that was
// only held would learn from its watchdog that the lock is gone.
func duringLoss(p trial.Play) trial.Play {
	p.At, p.Paused, p.Settled, p.Until = sale.Write, true, true, []trial.Sight{trial.Another}
	return p
}
