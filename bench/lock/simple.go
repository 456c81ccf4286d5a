package lock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/redislock"
)

var stocklockLock = Lock{
	Name:     "stocklock",
	Doc:      "internal/redislock of this repository",
	Tuning:   "none",
	Requests: []string{"evalsha", "eval"},
	Keeps:    true,
	Open: func(c Config) (Locker, error) {
		locker := redislock.New(c.Redis[0], redislock.Options{Lease: c.Lease, Wait: c.Wait})
		return Locker{
			Lock: func(_, waiting context.Context, key string) (Hold, error) {
				held, lease, err := locker.Acquire(waiting, key)
				if err != nil {
					return Hold{}, err
				}
				return Hold{Context: held, Release: func(context.Context) error { return lease.Release() }}, nil
			},
			Close: func() error {
				_ = locker.Close(context.Background())
				return nil
			},
		}, nil
	},
}

var mutexLock = Lock{
	Name:  "mutex",
	Doc:   "sync.Mutex: the upper bound, because it sends no requests; all goroutines are in one process",
	Local: true,
	Open: func(Config) (Locker, error) {
		var m sync.Mutex // one for all keys, because a measurement uses only one
		unlock := func(context.Context) error {
			m.Unlock()
			return nil
		}
		return Locker{Lock: func(ctx, _ context.Context, _ string) (Hold, error) {
			m.Lock()
			return Hold{Context: ctx, Release: unlock}, nil
		}}, nil
	},
}

var noLock = Lock{
	Name: "none",
	Doc:  "no lock: shows the cost of the section alone, and that lost updates are detected",
	Open: func(Config) (Locker, error) {
		release := func(context.Context) error { return nil }
		return Locker{Lock: func(ctx, _ context.Context, _ string) (Hold, error) {
			return Hold{Context: ctx, Release: release}, nil
		}}, nil
	},
}

// polled is the pattern of the Redis documentation: SET NX PX with a random value, retried after a
// pause, and a script that deletes the key if it still has that value.
func polled(name string, pause time.Duration) Lock {
	return Lock{
		Name:     name,
		Doc:      fmt.Sprintf("SET NX PX, retried every %s; a script compares and deletes", pause),
		Tuning:   "none",
		Requests: []string{"set", "evalsha", "eval"},
		Open: func(c Config) (Locker, error) {
			return Locker{Lock: func(ctx, waiting context.Context, key string) (Hold, error) {
				return setnx(ctx, waiting, c, key, pause)
			}}, nil
		},
	}
}

var compareAndDelete = redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)

var errNotHeld = errors.New("setnx: not held")

func setnx(ctx, waiting context.Context, c Config, key string, pause time.Duration) (Hold, error) {
	value := rand.Text()
	for {
		ok, err := c.Redis[0].SetNX(waiting, key, value, c.Lease).Result()
		if err != nil {
			return Hold{}, err
		}
		if ok {
			break
		}
		select {
		case <-time.After(pause):
		case <-waiting.Done():
			return Hold{}, fmt.Errorf("%w: %w", ErrTaken, context.Cause(waiting))
		}
	}
	return Hold{Context: ctx, Release: func(ctx context.Context) error {
		n, err := compareAndDelete.Run(ctx, c.Redis[0], []string{key}, value).Int()
		if err == nil && n == 0 {
			err = errNotHeld
		}
		return err
	}}, nil
}
