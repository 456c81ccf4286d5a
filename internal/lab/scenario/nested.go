package scenario

import (
	"stocklock/internal/lab/verdict"
	"stocklock/internal/strategy"
)

var nested = Scenario{
	Name:    "nested",
	Doc:     "the sale takes its own lock a second time on the way, and the wait is shorter than the lease",
	Attacks: strategy.Reentrant,
	Demands: []Demand{{Property: strategy.Reentrant, Otherwise: verdict.Stuck}, {Property: strategy.Exclusive, Otherwise: verdict.Oversold}},
	// A wait longer than the lease would outlive the deadlock: busy for long, not stuck.
	ShortWait: true,
	Play:      Play{Nested: true, Until: []Sight{Again}},
}
