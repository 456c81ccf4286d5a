package peers

import (
	"context"
	"fmt"
	"math"

	"github.com/go-redsync/redsync/v4"
	syncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"stocklock/internal/strategy"
)

var redsyncOne = Peer{
	Module: "github.com/go-redsync/redsync/v4",
	Bench:  "redsync",
	Strategy: strategy.Strategy{
		Name:      "redsync",
		Doc:       "redsync on one Redis server: SET NX PX, a random owner, released by a script; not renewed",
		Source:    "the README of redsync: NewMutex, Lock, Unlock; the lease, the tries and their delay are the lab's",
		Guard:     "redsync.NewMutex on one server",
		Decrement: "read-then-write",
		Telling:   "overrun",
		Properties: strategy.Properties{
			Has: strategy.DurableAnswers | strategy.Exclusive | strategy.Recovers | strategy.AtomicLease |
				strategy.OwnerChecked | strategy.AtomicRelease | strategy.ClockFree,
		},
		Inapplicable: map[string]string{"clock-skew": ownClock},
		Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
			return redsyncOn(d, d.Redis), strategy.ReadThenWrite
		},
	},
}

// redsyncOn makes a guard of redsync on independent servers.
func redsyncOn(d strategy.Deps, servers ...redis.UniversalClient) strategy.Guard {
	pools := make([]syncredis.Pool, len(servers))
	for i, client := range servers {
		pools[i] = goredis.NewPool(client)
	}
	locker := redsync.New(pools...)
	return guard{wait: d.Wait, library: library{lock: func(ctx, waiting context.Context, key string) (hold, error) {
		// The wait ends by its context, and not after the library's 32 tries.
		m := locker.NewMutex(key, redsync.WithExpiry(d.Lease), redsync.WithTries(math.MaxInt), redsync.WithRetryDelay(d.Retry))
		if err := m.LockContext(waiting); err != nil {
			return hold{}, fmt.Errorf("%w: %w", errTaken, err)
		}
		return hold{ctx: ctx, release: func(ctx context.Context) error {
			_, err := m.UnlockContext(ctx)
			return err
		}}, nil
	}}}
}
