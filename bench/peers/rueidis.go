package peers

import (
	"stocklock/bench/lock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/strategy/ladder"
)

const rueidisModule = "github.com/redis/rueidis"

// rueidisLock is what rueidislock declares. It gives Redis the time at which a key expires, by the
// clock of the client.
const rueidisLock = polledLock&^declared.ClockFree | declared.Renews | declared.LossAware

var rueidisOne = Peer{
	Module: rueidisModule,
	Rung: ladder.Declare(strategy.Strategy{
		Name: "rueidislock",
		Doc:  "rueidislock with a majority of one key: SET NX PXAT, renewed at half of the lease, woken by client-side caching",
		Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
			return guardOf(lock.Rueidis, d, lock.Config{}), strategy.ReadThenWrite
		},
	}, declared.Strategy{
		Source:       "the README of rueidislock: KeyMajority 1 for one Redis, NoLoopTracking",
		Guard:        "rueidislock.WithContext, KeyMajority 1",
		Decrement:    "read-then-write",
		Telling:      "failover",
		Properties:   declared.Properties{Has: rueidisLock, NotApplicable: declared.Reentrant},
		Inapplicable: asksItself,
		State:        declared.State{Locks: lock.RueidisKeys(1)},
		OwnClient:    true,
	}),
	Notes: map[string]Note{
		"failover":      oneRedis("KeyMajority 2 on servers that fail one by one: [rueidislock-two-of-three](#rueidislock-two-of-three)"),
		"redis-restart": oneRedis("KeyMajority 2 on servers that fail one by one: [rueidislock-two-of-three](#rueidislock-two-of-three)"),
		"eviction":      oneRedis("KeyMajority 2 on servers that fail one by one, or a Redis without eviction"),
		"pause":         fencing,
	},
}

var rueidisTwo = Peer{
	Module: rueidisModule,
	Rung: ladder.Declare(strategy.Strategy{
		Name:        "rueidislock-two-of-three",
		Doc:         "rueidislock with a majority of three keys, each on a Redis server of its own, renewed at half of the lease",
		NeedsQuorum: true,
		Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
			return guardOf(lock.RueidisTwo, d, lock.Config{}), strategy.ReadThenWrite
		},
	}, declared.Strategy{
		Source:       "the README of rueidislock: KeyMajority 2, which is its default; ClientBuilder sends each key to its server",
		Guard:        "rueidislock.WithContext, KeyMajority 2",
		Decrement:    "read-then-write",
		Telling:      "pause",
		Properties:   declared.Properties{Has: rueidisLock | declared.SurvivesDataLoss, NotApplicable: declared.Reentrant},
		Inapplicable: asksItself,
		State:        declared.State{Locks: lock.RueidisKeys(3)},
		OwnClient:    true,
	}),
	Notes: map[string]Note{"pause": fencing},
}
