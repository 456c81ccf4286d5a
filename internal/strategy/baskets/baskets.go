// Package baskets has ways of taking several items in one sale, as people take them. Most of them break.
//
// They exist to be compared, with the strategies of package strategy that sell baskets. Each is one file
// and one line in the list, and declares its basket properties. No shop in production contains them. Their
// customers' lines come in the order in which they were posted: see [strategy.Posted].
package baskets

import (
	"slices"

	"stocklock/internal/strategy"
)

var all = []strategy.Strategy{}

// All returns the ways in teaching order, without the strategies that are fit for production.
func All() []strategy.Strategy { return slices.Clone(all) }
