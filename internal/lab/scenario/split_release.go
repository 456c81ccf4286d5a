package scenario

import (
	"stocklock/internal/lab/verdict"
	"stocklock/internal/sale"
	"stocklock/internal/strategy"
)

var splitRelease = Scenario{
	Name: "split-release",
	Doc: "a holder is late inside its release: between the check and the delete where there are two steps, " +
		"before the only step where there is one",
	Attacks: strategy.AtomicRelease,
	Demands: []Demand{{Property: strategy.Exclusive, Otherwise: verdict.Oversold}, {Property: strategy.OwnerChecked, Otherwise: verdict.Oversold}, {Property: strategy.AtomicRelease, Otherwise: verdict.Oversold}},
	Play:    Play{At: sale.Releasing, Until: []Sight{LeaseOver, Another}, Third: true},
}
