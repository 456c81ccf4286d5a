package scenario

import (
	"stocklock/internal/lab/verdict"
	"stocklock/internal/sale"
	"stocklock/internal/strategy"
)

var crash = Scenario{
	Name:    "crash",
	Doc:     "a shop is killed with kill -9 inside its section, right after it read the stock, and starts again",
	Attacks: strategy.Recovers,
	Demands: []Demand{{Property: strategy.Exclusive, Otherwise: verdict.Oversold}, {Property: strategy.DurableAnswers, Otherwise: verdict.Left}, {Property: strategy.Recovers, Otherwise: verdict.Stuck, Counted: verdict.Left}},
	Play:    killAt(sale.Read),
}

func killAt(p sale.Point) Play {
	return Play{At: p, Kill: true, Until: []Sight{Exited, Another}, Third: true}
}
