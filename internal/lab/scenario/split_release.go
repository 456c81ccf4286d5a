package scenario

import (
	"stocklock/internal/sale"
	"stocklock/internal/strategy"
)

var splitRelease = Scenario{
	Name: "split-release",
	Doc: "a holder is late inside its release: between the check and the delete where there are two steps, " +
		"before the only step where there is one",
	Attacks: strategy.AtomicRelease,
	Plan:    lateAt(sale.Releasing),
}
