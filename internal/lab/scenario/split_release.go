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
	Demands: []Demand{{strategy.Exclusive, verdict.Oversold}, {strategy.OwnerChecked, verdict.Oversold}, {strategy.AtomicRelease, verdict.Oversold}},
	Play:    Play{At: sale.Releasing, Until: []Sight{LeaseOver, Another}, Third: true},
}
