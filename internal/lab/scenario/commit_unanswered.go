package scenario

import (
	"stocklock/internal/lab/verdict"
	"stocklock/internal/sale"
	"stocklock/internal/strategy"
)

var commitUnanswered = Scenario{
	Name:    "commit-unanswered",
	Doc:     "MySQL carries out the COMMIT of a sale, and the connection breaks before the answer",
	Attacks: strategy.Once,
	Demands: []Demand{{Property: strategy.Exclusive, Otherwise: verdict.Oversold}, {Property: strategy.Once, Otherwise: verdict.Twice}},
	Play:    Play{At: sale.Write, Lose: true, Until: []Sight{AnswerLost}},
}
