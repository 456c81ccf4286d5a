package peers

import (
	"stocklock/bench/lock"
	"stocklock/internal/strategy"
)

const rueidisModule = "github.com/redis/rueidis"

// rueidisLock is what rueidislock declares. It gives Redis the time at which a key expires, by the
// clock of the client.
const rueidisLock = polledLock&^strategy.ClockFree | strategy.Renews | strategy.LossAware

var rueidisOne = Peer{
	Module: rueidisModule,
	Strategy: strategy.Strategy{
		Name:         "rueidislock",
		Doc:          "rueidislock with a majority of one key: SET NX PXAT, renewed at half of the lease, woken by client-side caching",
		Source:       "the README of rueidislock: KeyMajority 1 for one Redis, NoLoopTracking",
		Guard:        "rueidislock.WithContext, KeyMajority 1",
		Decrement:    "read-then-write",
		Telling:      "failover",
		Properties:   strategy.Properties{Has: rueidisLock, NotApplicable: strategy.Reentrant},
		Inapplicable: asksItself,
		State:        strategy.State{Locks: lock.RueidisKeys(1)},
		OwnClient:    true,
		Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
			return guardOf(lock.Rueidis, d, lock.Config{}), strategy.ReadThenWrite
		},
	},
	Notes: map[string]Note{
		"failover":      oneRedis("KeyMajority 2 on servers that fail one by one: [rueidislock-two-of-three](#rueidislock-two-of-three)"),
		"redis-restart": oneRedis("KeyMajority 2 on servers that fail one by one: [rueidislock-two-of-three](#rueidislock-two-of-three)"),
		"eviction":      oneRedis("KeyMajority 2 on servers that fail one by one, or a Redis without eviction"),
		"pause":         fencing,
	},
}

var rueidisTwo = Peer{
	Module: rueidisModule,
	Strategy: strategy.Strategy{
		Name:         "rueidislock-two-of-three",
		Doc:          "rueidislock with a majority of three keys, each on a Redis server of its own, renewed at half of the lease",
		Source:       "the README of rueidislock: KeyMajority 2, which is its default; ClientBuilder sends each key to its server",
		Guard:        "rueidislock.WithContext, KeyMajority 2",
		Decrement:    "read-then-write",
		Telling:      "pause",
		Properties:   strategy.Properties{Has: rueidisLock | strategy.SurvivesDataLoss, NotApplicable: strategy.Reentrant},
		Inapplicable: asksItself,
		State:        strategy.State{Locks: lock.RueidisKeys(3)},
		NeedsQuorum:  true,
		OwnClient:    true,
		Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
			return guardOf(lock.RueidisTwo, d, lock.Config{}), strategy.ReadThenWrite
		},
	},
	Notes: map[string]Note{"pause": fencing},
}
