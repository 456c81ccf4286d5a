package scenario

import (
	"stocklock/internal/lab/trial"
	"stocklock/internal/sale"
	"stocklock/internal/strategy/declared"
)

var lateRelease = trial.Scenario{
	Name:    "late-release",
	Doc:     "a holder has written, and releases when its lease is over, another is in its section and a third waits",
	Attacks: declared.OwnerChecked,
	Crowd:   trial.Play{At: sale.Written, Until: []trial.Sight{trial.LeaseOver, trial.Another}, Third: true},
}
