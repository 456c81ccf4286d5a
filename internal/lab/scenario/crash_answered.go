package scenario

import (
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/sale"
	"stocklock/internal/strategy/declared"
)

var crashAnswered = trial.Scenario{
	Name:    "crash-answered",
	Doc:     "a shop is killed with kill -9 right after it has answered a sale, and starts again",
	Attacks: declared.DurableAnswers,
	Demands: []trial.Demand{{Property: declared.Exclusive, Otherwise: verdict.Oversold}, {Property: declared.DurableAnswers, Otherwise: verdict.Lied}},
	Crowd:   killAt(sale.Answered),
}
