package scenario

import (
	"stocklock/internal/lab/trial"
	"stocklock/internal/strategy/declared"
)

var contention = trial.Scenario{
	Name:    "contention",
	Doc:     "many customers want the last units at once; nothing else goes wrong",
	Attacks: declared.Exclusive,

	Comparable: true,
}
