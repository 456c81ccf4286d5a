package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bsm/redislock"
)

// BSM is bsm/redislock.
var BSM = Lock{
	Name:     "bsm-redislock",
	Doc:      "github.com/bsm/redislock v0.9.4: polls with a script",
	Tuning:   "LinearBackoff of 1 ms instead of no retry; renewed with Refresh at a third of the lease",
	Requests: []string{"evalsha", "eval"},
	Keeps:    true,
	Open: func(c Config) (Locker, error) {
		locker := redislock.New(c.Redis[0])
		retry := &redislock.Options{RetryStrategy: redislock.LinearBackoff(c.Poll)}
		return Locker{Lock: func(ctx, waiting context.Context, key string) (Hold, error) {
			waiting, cancel := context.WithTimeout(waiting, bsmPatience)
			defer cancel()
			options := retry
			if refused := refusalOf(ctx); refused != nil {
				options = &redislock.Options{RetryStrategy: refusable{retry.RetryStrategy, refused}}
			}
			held, err := locker.Obtain(waiting, key, c.Lease, options)
			if waiting.Err() != nil || errors.Is(err, redislock.ErrNotObtained) {
				if err == nil {
					err = held.Release(context.WithoutCancel(ctx))
				}
				return Hold{}, fmt.Errorf("%w: %w", ErrTaken, errors.Join(err, context.Cause(waiting)))
			}
			if err != nil {
				return Hold{}, err
			}
			return Hold{
				Context: ctx,
				Release: held.Release,
				Extend:  func(ctx context.Context) error { return held.Refresh(ctx, c.Lease, nil) },
			}, nil
		}}, nil
	},
}

// refusable is a retry strategy, which the library asks after each refusal.
type refusable struct {
	redislock.RetryStrategy
	refused func()
}

func (r refusable) NextBackoff() time.Duration {
	r.refused()
	return r.RetryStrategy.NextBackoff()
}

// bsmPatience is the deadline of an Obtain. Without a deadline the library takes the lease for one.
const bsmPatience = time.Hour
