package scenario

import (
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/strategy/declared"
)

var nested = trial.Scenario{
	Name:    "nested",
	Doc:     "the sale takes its own lock a second time on the way, and the wait is shorter than the lease",
	Attacks: declared.Reentrant,
	Demands: []trial.Demand{{Property: declared.Reentrant, Otherwise: verdict.Stuck}, {Property: declared.Exclusive, Otherwise: verdict.Oversold}},
	// A wait longer than the lease would outlive the deadlock: busy for long, not stuck.
	ShortWait: true,
	Crowd:     trial.Play{Nested: true, Until: []trial.Sight{trial.Again}},
}
