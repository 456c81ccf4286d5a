package ladder

import (
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var none = Declare(strategy.Strategy{
	Name:         "none",
	Doc:          "no lock at all: read the stock, compute, write it back",
	WithoutRedis: true,
	Build: func(strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return strategy.Unguarded{}, strategy.ReadThenWrite
	},
}, declared.Strategy{
	Source:    "every first version; the lost update (P4) of Berenson et al., 1995",
	Guard:     "nothing",
	Decrement: "read-then-write",
	Telling:   "contention",
	// There is no lock, so no property of locks applies.
	Properties: declared.Properties{
		Has: declared.DurableAnswers | declared.Once,
		NotApplicable: declared.Recovers | declared.AtomicLease | declared.Renews |
			declared.OwnerChecked | declared.AtomicRelease | declared.Reentrant |
			declared.ClockFree | declared.LossAware | declared.SurvivesDataLoss |
			declared.PauseProof,
	},
})
