package scenario

import (
	"math/rand/v2"
	"time"

	"stocklock/internal/fault"
	"stocklock/internal/strategy"
	"stocklock/internal/trace"
)

var crash = Scenario{
	Name:    "crash",
	Doc:     "a shop is killed with kill -9 inside its section, right after it read the stock, and starts again",
	Attacks: strategy.Recovers,
	Plan:    killAt(trace.Read),
}

func killAt(p trace.Point) func(*rand.Rand, time.Duration) Plan {
	return func(rng *rand.Rand, _ time.Duration) Plan {
		return Plan{Cargo: schedule(rng, 2, 10, func() Cargo {
			return Cargo{Fault: fault.Fault{Point: p, Action: fault.Kill}, Alone: true}
		})}
	}
}
