package scenario

import (
	"stocklock/internal/lab/verdict"
	"stocklock/internal/sale"
	"stocklock/internal/strategy/declared"
)

var commitUnanswered = Scenario{
	Name:    "commit-unanswered",
	Doc:     "MySQL carries out the COMMIT of a sale, and the connection breaks before the answer",
	Attacks: declared.Once,
	Demands: []Demand{{Property: declared.Exclusive, Otherwise: verdict.Oversold}, {Property: declared.Once, Otherwise: verdict.Twice}},
	Play:    Play{At: sale.Write, Lose: true, Until: []Sight{AnswerLost}},
}
