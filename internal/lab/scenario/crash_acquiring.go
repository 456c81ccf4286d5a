package scenario

import (
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/sale"
	"stocklock/internal/strategy/declared"
)

var crashAcquiring = trial.Scenario{
	Name:    "crash-acquiring",
	Doc:     "a shop is killed with kill -9 at the earliest moment at which Redis has its lock, and starts again",
	Attacks: declared.AtomicLease,
	Demands: []trial.Demand{{Property: declared.Exclusive, Otherwise: verdict.Oversold}, {Property: declared.Recovers, Otherwise: verdict.Stuck}, {Property: declared.AtomicLease, Otherwise: verdict.Stuck}},
	Crowd:   killAt(sale.Acquiring),
}
