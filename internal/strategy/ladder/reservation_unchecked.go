package ladder

import "stocklock/internal/strategy"

var reservationUnchecked = strategy.Strategy{
	Name:         "reservation-unchecked",
	Doc:          "hold, work, and confirm without looking whether the hold still stands: the reaper may have sold its units again",
	Source:       "reservations with an expiry, as they are usually written",
	Guard:        "nothing",
	Decrement:    "UPDATE items, INSERT hold; DELETE hold, INSERT order",
	Telling:      "overrun",
	Servers:      strategy.ReadsSource | strategy.WritesAnywhere | strategy.SwitchoverProof,
	WithoutRedis: true,
	Properties: strategy.Properties{
		Has: strategy.Exclusive | strategy.Recovers | strategy.AtomicLease | strategy.ClockFree | strategy.DurableAnswers | strategy.Once,
		NotApplicable: strategy.OwnerChecked | strategy.AtomicRelease | strategy.Reentrant |
			strategy.SurvivesDataLoss,
	},
	State: reserved,
	Lease: reservedFor,
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return reserving(d, "DELETE FROM reservations WHERE id = ?", false)
	},
}
