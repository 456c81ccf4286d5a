package scenario

import (
	"stocklock/internal/lab/trial"
	"stocklock/internal/sale"
	"stocklock/internal/strategy/declared"
)

var overrun = trial.Scenario{
	Name:    "overrun",
	Doc:     "the work inside the section takes longer than the lease",
	Attacks: declared.Renews,
	Crowd:   trial.Play{At: sale.Read, Until: []trial.Sight{trial.LeaseOver, trial.Another}},
}
