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
		Doc:  "bsm/redislock: a script with SET NX PX and a random owner; the lab calls Refresh at every third of the lease, and its error ends the sale",
		Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
			g := guardOf(lock.BSM, d, lock.Config{Poll: d.Retry})
			// Nothing in the library renews. Its README shows one Refresh, and ends the program when that fails. The loop is the
			// lab's, and redsync has none: the page says so, because the two rows differ by it.
			g.renews = true
			return g, strategy.ReadThenWrite
		},
	}, declared.Strategy{
		Source:    "the README of bsm/redislock: Obtain, Refresh, Release. It shows one Refresh; the goroutine that repeats it is the lab's",
		Guard:     "redislock.Obtain; Refresh at a third, by the lab",
		Decrement: "read-then-write",
		Telling:   "failover",
		Properties: declared.Properties{
			Has:           polledLock | declared.Renews | declared.LossAware,
			NotApplicable: declared.Reentrant,
		},
		Inapplicable: asksItself,
	}),
	Besides: "Renews and loss-aware are the lab's: its goroutine calls Refresh, and ends the sale when that fails. Neither library has them.",
	Notes: map[string]Note{
		"failover":      oneRedis("none in the library, which takes one client"),
		"redis-restart": oneRedis("none in the library, which takes one client"),
		"eviction":      oneRedis("a Redis without eviction"),
		"pause":         fencing,
	},
}
