package scenario

import "stocklock/internal/strategy/declared"

var contention = Scenario{
	Name:    "contention",
	Doc:     "many customers want the last units at once; nothing else goes wrong",
	Attacks: declared.Exclusive,

	Comparable: true,
	FixedLoad:  true,
}
