package scenario

import (
	"stocklock/internal/strategy"
)

var contention = Scenario{
	Name:    "contention",
	Doc:     "many customers want the last units at once; nothing else goes wrong",
	Attacks: strategy.Exclusive,

	Comparable: true,
	FixedLoad:  true,
}
