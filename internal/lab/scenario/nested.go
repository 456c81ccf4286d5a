package scenario

import (
	"stocklock/internal/lab/verdict"
	"stocklock/internal/strategy/declared"
)

var nested = Scenario{
	Name:    "nested",
	Doc:     "the sale takes its own lock a second time on the way, and the wait is shorter than the lease",
	Attacks: declared.Reentrant,
	Demands: []Demand{{Property: declared.Reentrant, Otherwise: verdict.Stuck}, {Property: declared.Exclusive, Otherwise: verdict.Oversold}},
	// A wait longer than the lease would outlive the deadlock: busy for long, not stuck.
	ShortWait: true,
	Play:      Play{Nested: true, Until: []Sight{Again}},
}
