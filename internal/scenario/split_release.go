package scenario

import (
	"stocklock/internal/strategy"
	"stocklock/internal/trace"
)

var splitRelease = Scenario{
	Name: "split-release",
	Doc: "a holder is late inside its release: between the check and the delete where there are two steps, " +
		"before the only step where there is one",
	Attacks: strategy.AtomicRelease,
	Plan:    lateAt(trace.Releasing),
}
