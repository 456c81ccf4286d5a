package ladder

import "stocklock/internal/strategy"

var none = strategy.Strategy{
	Name:         "none",
	Doc:          "no lock at all: read the stock, compute, write it back",
	Source:       "every first version; the lost update (P4) of Berenson et al., 1995",
	Guard:        "nothing",
	Decrement:    "read-then-write",
	Telling:      "contention",
	WithoutRedis: true,
	// There is no lock, so no property of locks applies.
	Properties: strategy.Properties{
		Has: strategy.DurableAnswers | strategy.Once,
		NotApplicable: strategy.Recovers | strategy.AtomicLease | strategy.Renews |
			strategy.OwnerChecked | strategy.AtomicRelease | strategy.Reentrant |
			strategy.ClockFree | strategy.LossAware | strategy.SurvivesDataLoss |
			strategy.PauseProof,
	},
	Build: func(strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return strategy.Unguarded{}, strategy.ReadThenWrite
	},
}
