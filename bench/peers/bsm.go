package peers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bsm/redislock"

	"stocklock/internal/strategy"
)

var bsm = Peer{
	Module: "github.com/bsm/redislock",
	Bench:  "bsm/redislock",
	Strategy: strategy.Strategy{
		Name:      "bsm-redislock",
		Doc:       "bsm/redislock: a script with SET NX PX and a random owner; Refresh at every third of the lease, whose error ends the sale",
		Source:    "the README of bsm/redislock: Obtain, Refresh, Release, and what it does with an error of Refresh",
		Guard:     "redislock.Obtain; Refresh at a third",
		Decrement: "read-then-write",
		Telling:   "failover",
		Properties: strategy.Properties{
			Has:           polledLock | strategy.Renews | strategy.LossAware,
			NotApplicable: strategy.Reentrant,
		},
		Inapplicable: asksItself,
		Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
			return guard{wait: d.Wait, library: library{lock: bsmLock(d, redislock.New(d.Redis))}}, strategy.ReadThenWrite
		},
	},
	Notes: map[string]Note{
		"failover":      oneRedis("none in the library, which takes one client"),
		"redis-restart": oneRedis("none in the library, which takes one client"),
		"eviction":      oneRedis("a Redis without eviction"),
		"pause":         fencing,
	},
}

func bsmLock(d strategy.Deps, locker *redislock.Client) func(ctx, waiting context.Context, key string) (hold, error) {
	retry := &redislock.Options{RetryStrategy: redislock.LinearBackoff(d.Retry)}
	return func(ctx, waiting context.Context, key string) (hold, error) {
		lock, err := locker.Obtain(waiting, key, d.Lease, retry)
		if waiting.Err() != nil || errors.Is(err, redislock.ErrNotObtained) {
			if err == nil {
				err = lock.Release(context.WithoutCancel(ctx))
			}
			return hold{}, fmt.Errorf("%w: %w", errTaken, errors.Join(err, context.Cause(waiting)))
		}
		if err != nil {
			return hold{}, err
		}
		held, stop := refreshed(ctx, lock, d.Lease)
		return hold{ctx: held, release: func(ctx context.Context) error {
			stop()
			return lock.Release(ctx)
		}}, nil
	}
}

// refreshed extends the lock at every third of its lease, as the README shows Refresh, until stop
// returns. An error of Refresh ends the context: the README ends the program. Each Refresh has a
// deadline, because the lab's leases are shorter than the 2 s for which a client waits for Redis.
func refreshed(ctx context.Context, lock *redislock.Lock, lease time.Duration) (held context.Context, stop func()) {
	held, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer cancel()
		tick := time.NewTicker(lease / 3)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-held.Done():
				return
			}
			refreshing, cancel := context.WithTimeout(held, lease/3)
			err := lock.Refresh(refreshing, lease, nil)
			cancel()
			if err != nil {
				return
			}
		}
	}()
	return held, func() {
		cancel()
		<-ended
	}
}
