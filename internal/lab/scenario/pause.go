package scenario

import (
	"stocklock/internal/sale"
	"stocklock/internal/strategy/declared"
)

var pause = Scenario{
	Name:    "pause",
	Doc:     "a whole shop is stopped with SIGSTOP after its last look at the lock, right before its UPDATE, until past its lease",
	Attacks: declared.PauseProof,
	Play:    Play{At: sale.Write, Paused: true, Until: []Sight{LeaseOver, Another}},
}
