package ladder

import "stocklock/internal/strategy"

var reentrant = strategy.Strategy{
	Name:      "reentrant",
	Doc:       "the reference lock: reentrant, renewed by a watchdog, and its holder learns in time when it is lost",
	Source:    "internal/redislock",
	Guard:     strategy.ReferenceGuard,
	Decrement: "read-then-write",
	Telling:   "failover",
	Servers:   strategy.RewindProof,
	Properties: strategy.Properties{
		Has: strategy.DurableAnswers | strategy.Once | strategy.Exclusive | strategy.Recovers | strategy.AtomicLease |
			strategy.Renews | strategy.OwnerChecked | strategy.AtomicRelease |
			strategy.Reentrant | strategy.ClockFree | strategy.LossAware,
	},
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return strategy.Reference(d), strategy.ReadThenWrite
	},
}
