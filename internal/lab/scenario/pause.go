package scenario

import (
	"stocklock/internal/lab/trial"
	"stocklock/internal/sale"
	"stocklock/internal/strategy/declared"
)

var pause = trial.Scenario{
	Name:    "pause",
	Doc:     "a whole shop is stopped with SIGSTOP after its last look at the lock, right before its UPDATE, until past its lease",
	Attacks: declared.PauseProof,
	Crowd:   trial.Play{At: sale.Write, Paused: true, Until: []trial.Sight{trial.LeaseOver, trial.Another}},
}
