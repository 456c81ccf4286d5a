package scenario

import (
	"stocklock/internal/lab/verdict"
	"stocklock/internal/sale"
	"stocklock/internal/strategy"
)

var crashAnswered = Scenario{
	Name:    "crash-answered",
	Doc:     "a shop is killed with kill -9 right after it has answered a sale, and starts again",
	Attacks: strategy.DurableAnswers,
	Demands: []Demand{{Property: strategy.Exclusive, Otherwise: verdict.Oversold}, {Property: strategy.DurableAnswers, Otherwise: verdict.Lied}},
	Play:    killAt(sale.Answered),
}
