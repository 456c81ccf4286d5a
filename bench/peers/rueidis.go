package peers

import (
	"stocklock/bench/lock"
	"stocklock/internal/strategy/declared"
)

const rueidisModule = "github.com/redis/rueidis"

// rueidisLock is what rueidislock declares. It gives Redis the time at which a key expires, by the
// clock of the client. It is not aware of every loss: see rueidisLate.
const rueidisLock = polledLock&^declared.ClockFree | declared.Renews

// rueidisLate is what is said of a holder that is cut off. The library sends a renewal with the end of
// the lease that it asks for as the deadline of the request.
var rueidisLate = Note{
	Says: "The returned `ctx` will be canceled automatically and immediately once the `KeyMajority` is not held anymore",
	Where: "[README](https://github.com/redis/rueidis/tree/main/rueidislock#features-backed-by-the-redis-client-side-caching). A renewal that " +
		"gets no answer is given up at the end of the lease that it asks for, and not of the one that runs. It is sent at half of the lease. " +
		"So a holder that is silently cut off still trusts its lock for half a lease after another can have it",
	Mend: fencing.Mend,
}

var rueidisOne = Peer{
	Module: rueidisModule,
	Rung: under(lock.Rueidis, "rueidislock with a majority of one key: SET NX PXAT, renewed at half of the lease, woken by client-side caching", declared.Strategy{
		Source:     "the README of rueidislock: KeyMajority 1 for one Redis, NoLoopTracking",
		Guard:      "rueidislock.WithContext, KeyMajority 1",
		Telling:    "failover",
		Properties: declared.Properties{Has: rueidisLock},
		State:      declared.State{Locks: lock.RueidisKeys(1)},
		OwnClient:  true,
	}),
	Notes: map[string]Note{
		"failover":      oneRedis("KeyMajority 2 on servers that fail one by one: [rueidislock-two-of-three](#rueidislock-two-of-three)"),
		"redis-restart": oneRedis("KeyMajority 2 on servers that fail one by one: [rueidislock-two-of-three](#rueidislock-two-of-three)"),
		"eviction":      oneRedis("KeyMajority 2 on servers that fail one by one, or a Redis without eviction"),
		"partition":     rueidisLate,
		"pause":         fencing,
	},
}

var rueidisTwo = Peer{
	Module: rueidisModule,
	Rung: under(lock.RueidisTwo, "rueidislock with a majority of three keys, each on a Redis server of its own, renewed at half of the lease", declared.Strategy{
		Source:     "the README of rueidislock: KeyMajority 2, which is its default; ClientBuilder sends each key to its server",
		Guard:      "rueidislock.WithContext, KeyMajority 2",
		Telling:    "pause",
		Properties: declared.Properties{Has: rueidisLock | declared.SurvivesDataLoss},
		State:      declared.State{Locks: lock.RueidisKeys(3)},
		OwnClient:  true,
	}),
	Notes: map[string]Note{"partition": rueidisLate, "pause": fencing},
	Besides: "While one of the servers is away, a try that fails and a release return only at the end of the lease. The library deletes the " +
		"key on that server under a context of its own, which the caller's does not end.",
}
