package scenario

import (
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/sale"
	"stocklock/internal/strategy/declared"
)

var splitRelease = trial.Scenario{
	Name: "split-release",
	Doc: "a holder is late inside its release: between the check and the delete where there are two steps, " +
		"before the only step where there is one",
	Attacks: declared.AtomicRelease,
	Demands: []trial.Demand{{Property: declared.Exclusive, Otherwise: verdict.Oversold}, {Property: declared.OwnerChecked, Otherwise: verdict.Oversold}, {Property: declared.AtomicRelease, Otherwise: verdict.Oversold}},
	Crowd:   trial.Play{At: sale.Releasing, Until: []trial.Sight{trial.LeaseOver, trial.Another}, Third: true},
}
