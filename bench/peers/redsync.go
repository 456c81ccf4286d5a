package peers

import (
	"stocklock/bench/lock"
	"stocklock/internal/strategy/declared"
)

const redsyncModule = "github.com/go-redsync/redsync/v4"

// polledLock is what redsync and bsm/redislock have alike: a key with an expiry and an owner, freed
// by a script.
const polledLock = declared.DurableAnswers | declared.Once | declared.Exclusive | declared.Recovers | declared.AtomicLease |
	declared.OwnerChecked | declared.AtomicRelease | declared.ClockFree

var redsyncOne = Peer{
	Module:  redsyncModule,
	Besides: notRenewed,
	Rung: under(lock.Redsync, "redsync on one Redis server: SET NX PX with a random owner, freed by a script; not renewed", declared.Strategy{
		Source:     "the README of redsync: NewMutex, Lock, Unlock",
		Guard:      "redsync.NewMutex on one server",
		Telling:    "overrun",
		Properties: declared.Properties{Has: polledLock},
		Scripts:    map[string]string{redsyncDelete: "release"},
	}),
	Notes: map[string]Note{
		"overrun":       redsyncExpiry,
		"partition":     redsyncExpiry,
		"failover":      oneRedis("redsync.New with the pools of independent servers: [redsync-five](#redsync-five)"),
		"redis-restart": oneRedis("redsync.New with the pools of independent servers: [redsync-five](#redsync-five)"),
		"eviction":      oneRedis("redsync.New with the pools of independent servers, or a Redis without eviction"),
		"pause":         fencing,
	},
}

var redsyncFive = Peer{
	Module:  redsyncModule,
	Besides: notRenewed,
	Rung: under(lock.RedsyncFive, "redsync on a majority of five independent Redis servers; not renewed", declared.Strategy{
		Source:     "the README of redsync, and the Redlock algorithm that it implements",
		Guard:      "redsync.NewMutex on a majority of five",
		Telling:    "overrun",
		Properties: declared.Properties{Has: polledLock | declared.SurvivesDataLoss},
		Inapplicable: map[string]string{
			"nested": asksItself["nested"], "clock-skew": ownClock,
			"redis-restart": "the scenario starts a server without its data at once, and its documentation (redis.io, Distributed Locks with Redis) warns of that: " +
				"\"make an instance, after a crash, unavailable for at least a bit more than the max TTL we use\". Two can then hold, but only " +
				"by chance: where the first had just three of the five. See failover for a server that stays away",
		},
	}),
	Notes: map[string]Note{"overrun": redsyncExpiry, "partition": redsyncExpiry, "pause": fencing},
}

// notRenewed is for both rows of redsync, beside that of bsm/redislock.
const notRenewed = "Nothing renews it here. For [bsm-redislock](#bsm-redislock), a goroutine of the lab does."

// redsyncDelete is the SHA-1 of redsync's script that deletes a key of its owner. It also runs after
// each try that failed.
const redsyncDelete = "e950836ed1e694540c503ef9972b8de518044d3b"

var redsyncExpiry = Note{
	Says: "After this is successful, no one else can obtain the same lock (the same mutex name) until we unlock it.",
	Where: "[README](https://github.com/go-redsync/redsync#usage). The reference has WithExpiry (8 s by default), and Extend, " +
		"which \"resets the mutex's expiry\". Nothing renews by itself: the [request for it](https://github.com/go-redsync/redsync/pull/153) was closed as wontfix",
	Mend: "ExtendContext at a third of the expiry, from a goroutine that ends the work when it fails",
}
