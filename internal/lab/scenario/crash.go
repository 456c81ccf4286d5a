package scenario

import (
	"math/rand/v2"
	"time"

	"stocklock/internal/lab/verdict"
	"stocklock/internal/sale"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy"
)

var crash = Scenario{
	Name:    "crash",
	Doc:     "a shop is killed with kill -9 inside its section, right after it read the stock, and starts again",
	Attacks: strategy.Recovers,
	Demands: []Demand{{strategy.Exclusive, verdict.Oversold}, {strategy.DurableAnswers, verdict.Lied}, {strategy.Recovers, verdict.Stuck}},
	Plan:    killAt(sale.Read),
}

func killAt(p sale.Point) func(*rand.Rand, time.Duration) Plan {
	return func(rng *rand.Rand, _ time.Duration) Plan {
		return Plan{Inject: schedule(rng, 2, 10, func() Injection {
			return Injection{Fault: labmode.Fault{Point: p, Action: labmode.Kill}, Alone: true, Idle: p == sale.Answered}
		})}
	}
}
