package ladder

import (
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var reentrant = Declare(strategy.Strategy{
	Name: "reentrant",
	Doc:  "the reference lock: reentrant, renewed by a watchdog, and its holder learns in time when it is lost",
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return strategy.Reference(d), strategy.ReadThenWrite
	},
}, declared.Strategy{
	Source:     "internal/redislock",
	Guard:      ReferenceGuard,
	Decrement:  "read-then-write",
	Telling:    "failover",
	Servers:    declared.RewindProof,
	Properties: declared.Properties{Has: reentrantTimer.Declared.Has | declared.LossAware},
})
