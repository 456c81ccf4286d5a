package ladder

import (
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var reservationUnchecked = Declare(strategy.Strategy{
	Name:         "reservation-unchecked",
	Doc:          "hold, work, and confirm without looking whether the hold still stands: the reaper may have sold its units again",
	WithoutRedis: true,
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return reserving(d, "DELETE FROM reservations WHERE id = ?", false)
	},
}, declared.Strategy{
	Source:    "reservations with an expiry, as they are usually written",
	Guard:     "nothing",
	Decrement: "UPDATE items, INSERT hold; DELETE hold, INSERT order",
	Telling:   "overrun",
	Servers:   declared.ReadsSource | declared.WritesAnywhere | declared.SwitchoverProof,
	Properties: declared.Properties{
		Has: declared.Exclusive | declared.Recovers | declared.AtomicLease | declared.ClockFree | declared.DurableAnswers | declared.Once,
		NotApplicable: declared.OwnerChecked | declared.AtomicRelease | declared.Reentrant |
			declared.SurvivesDataLoss,
	},
	State: reserved,
	Lease: reservedFor,
})
