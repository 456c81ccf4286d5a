package scenario

import (
	"stocklock/internal/lab/verdict"
	"stocklock/internal/sale"
	"stocklock/internal/strategy/declared"
)

var crash = Scenario{
	Name:    "crash",
	Doc:     "a shop is killed with kill -9 inside its section, right after it read the stock, and starts again",
	Attacks: declared.Recovers,
	Demands: []Demand{{Property: declared.Exclusive, Otherwise: verdict.Oversold}, {Property: declared.DurableAnswers, Otherwise: verdict.Left}, {Property: declared.Recovers, Otherwise: verdict.Stuck, Counted: verdict.Left}},
	Play:    killAt(sale.Read),
}

func killAt(p sale.Point) Play {
	return Play{At: p, Kill: true, Until: []Sight{Exited, Another}, Third: true}
}
