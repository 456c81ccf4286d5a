package scenario

import (
	"stocklock/internal/lab/verdict"
	"stocklock/internal/sale"
	"stocklock/internal/strategy"
)

var crashAcquiring = Scenario{
	Name:    "crash-acquiring",
	Doc:     "a shop is killed with kill -9 at the earliest moment at which Redis has its lock, and starts again",
	Attacks: strategy.AtomicLease,
	Demands: []Demand{{Property: strategy.Exclusive, Otherwise: verdict.Oversold}, {Property: strategy.Recovers, Otherwise: verdict.Stuck}, {Property: strategy.AtomicLease, Otherwise: verdict.Stuck}},
	Play:    killAt(sale.Acquiring),
}
