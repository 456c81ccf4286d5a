package peers

import (
	"stocklock/bench/lock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/strategy/ladder"
)

var bsm = Peer{
	Module: "github.com/bsm/redislock",
	Rung: ladder.Declare(strategy.Strategy{
		Name: "bsm-redislock",
		Doc:  "bsm/redislock: a script with SET NX PX and a random owner; Refresh at every third of the lease, whose error ends the sale",
		Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
			g := guardOf(lock.BSM, d, lock.Config{Poll: d.Retry})
			g.renews = true // as the README shows Refresh; it ends the program when Refresh fails
			return g, strategy.ReadThenWrite
		},
	}, declared.Strategy{
		Source:    "the README of bsm/redislock: Obtain, Refresh, Release, and what it does with an error of Refresh",
		Guard:     "redislock.Obtain; Refresh at a third",
		Decrement: "read-then-write",
		Telling:   "failover",
		Properties: declared.Properties{
			Has:           polledLock | declared.Renews | declared.LossAware,
			NotApplicable: declared.Reentrant,
		},
		Inapplicable: asksItself,
	}),
	Notes: map[string]Note{
		"failover":      oneRedis("none in the library, which takes one client"),
		"redis-restart": oneRedis("none in the library, which takes one client"),
		"eviction":      oneRedis("a Redis without eviction"),
		"pause":         fencing,
	},
}
