package ladder

import (
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var reentrant = readsUnder(strategy.Strategy{
	Name: "reentrant",
	Doc:  "the reference lock: reentrant, renewed by a watchdog, and its holder learns in time when it is lost",
}, declared.Strategy{
	Source:     "internal/redislock",
	Guard:      ReferenceGuard,
	Telling:    "failover",
	Properties: declared.Properties{Has: reentrantTimer.Declared.Has | declared.LossAware},
}, func(d strategy.Deps) strategy.Guard { return strategy.Reference(d) })
