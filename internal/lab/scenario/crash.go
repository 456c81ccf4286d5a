package scenario

import (
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/sale"
	"stocklock/internal/strategy/declared"
)

var crash = trial.Scenario{
	Name:    "crash",
	Doc:     "a shop is killed with kill -9 inside its section, right after it read the stock, and starts again",
	Attacks: declared.Recovers,
	Demands: []trial.Demand{{Property: declared.Exclusive, Otherwise: verdict.Oversold}, {Property: declared.DurableAnswers, Otherwise: verdict.Left}, {Property: declared.Recovers, Otherwise: verdict.Stuck, Counted: verdict.Left}},
	Crowd:   killAt(sale.Read),
}

func killAt(p sale.Point) trial.Play {
	return trial.Play{At: p, Kill: true, Until: []trial.Sight{trial.Exited, trial.Another}, Third: true}
}
