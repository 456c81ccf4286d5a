package scenario

import (
	"math/rand/v2"
	"time"

	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy"
)

var pause = Scenario{
	Name:    "pause",
	Doc:     "a whole shop is stopped with SIGSTOP after its last look at the lock, right before its UPDATE, until past its lease",
	Attacks: strategy.PauseProof,
	Plan: func(rng *rand.Rand, lease time.Duration) Plan {
		return Plan{Inject: schedule(rng, 2, 12, func() Injection {
			return Injection{Fault: labmode.Fault{Point: sale.Write, Action: labmode.Stop, For: lease * 2}, Alone: true}
		})}
	},
}
