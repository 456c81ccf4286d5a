package scenario

import (
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/sale"
	"stocklock/internal/strategy/declared"
)

var commitUnanswered = trial.Scenario{
	Name:    "commit-unanswered",
	Doc:     "MySQL carries out the COMMIT of a sale, and the connection breaks before the answer",
	Attacks: declared.Once,
	Demands: []trial.Demand{{Property: declared.Exclusive, Otherwise: verdict.Oversold}, {Property: declared.Once, Otherwise: verdict.Twice}},
	Crowd:   trial.Play{At: sale.Write, Lose: true, Until: []trial.Sight{trial.AnswerLost}},
}
