package lock

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/go-redsync/redsync/v4"
	syncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
)

// Redsync is redsync on one server.
var Redsync = Lock{
	Name:     "redsync",
	Doc:      "github.com/go-redsync/redsync/v4 v4.18.1 on one server: polls with SET NX, and deletes its value after each failed attempt",
	Tuning:   "WithRetryDelay(1 ms) instead of 50 to 250 ms, WithTries without end instead of 32; renewed with Extend at a third of the lease",
	Requests: []string{"set", "evalsha", "eval"},
	Keeps:    true,
	Open:     openRedsync,
}

// RedsyncFive is redsync on a majority of five servers.
var RedsyncFive = Lock{
	Name:     "redsync-five",
	Doc:      "github.com/go-redsync/redsync/v4 v4.18.1 on a majority of five servers",
	Tuning:   Redsync.Tuning,
	Requests: Redsync.Requests,
	Quorum:   5,
	Open:     openRedsync,
}

var errNotExtended = errors.New("redsync: not extended")

func openRedsync(c Config) (Locker, error) {
	var pools []syncredis.Pool
	for _, client := range c.Redis {
		pools = append(pools, goredis.NewPool(client))
	}
	// The wait ends by its context, and not after the library's 32 tries. A try that takes longer than
	// a twentieth of the lease fails.
	settings := []redsync.Option{redsync.WithExpiry(c.Lease), redsync.WithTries(math.MaxInt)}
	if c.Poll > 0 {
		settings = append(settings, redsync.WithRetryDelay(c.Poll))
	}
	locker := redsync.New(pools...)
	return Locker{Lock: func(ctx, waiting context.Context, key string) (Hold, error) {
		settings := settings
		if refused := refusalOf(ctx); refused != nil {
			settings = append(settings[:len(settings):len(settings)], redsync.WithRetryDelayFunc(refusableDelay(c.Poll, refused)))
		}
		m := locker.NewMutex(key, settings...)
		if err := m.LockContext(waiting); err != nil {
			return Hold{}, fmt.Errorf("%w: %w", ErrTaken, err)
		}
		return Hold{
			Context: ctx,
			Release: func(ctx context.Context) error {
				_, err := m.UnlockContext(ctx)
				return err
			},
			Extend: func(ctx context.Context) error {
				ok, err := m.ExtendContext(ctx)
				if err == nil && !ok {
					err = errNotExtended
				}
				return err
			},
		}, nil
	}}, nil
}

// refusableDelay is what the library waits after a refusal: poll, or its default for 0.
func refusableDelay(poll time.Duration, refused func()) redsync.DelayFunc {
	return func(int) time.Duration {
		refused()
		if poll > 0 {
			return poll
		}
		return 50*time.Millisecond + rand.N(200*time.Millisecond)
	}
}
