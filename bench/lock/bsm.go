package lock

import (
	"context"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

var bsmLock = Lock{
	Name:     "bsm/redislock",
	Doc:      "github.com/bsm/redislock v0.9.4: polls with a script",
	Tuning:   "LinearBackoff of 1 ms instead of no retry; renewed with Refresh at a third of the lease",
	Requests: []string{"evalsha", "eval"},
	Keeps:    true,
	Open: func(c Config) (Locker, error) {
		client := newClient(c)
		return &bsmLocker{client, redislock.New(client), c.Lease}, nil
	},
}

type bsmLocker struct {
	client *redis.Client
	locker *redislock.Client
	lease  time.Duration
}

// patience is the deadline of an Obtain. Without a deadline the library takes the lease for one.
const patience = time.Hour

func (l *bsmLocker) Lock(ctx context.Context, key string) (Hold, error) {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	held, err := l.locker.Obtain(waiting, key, l.lease, &redislock.Options{RetryStrategy: redislock.LinearBackoff(time.Millisecond)})
	if err != nil {
		return nil, err
	}
	return bsmHold{ctx, held, l.lease}, nil
}

func (l *bsmLocker) Close() error { return l.client.Close() }

type bsmHold struct {
	ctx   context.Context
	lock  *redislock.Lock
	lease time.Duration
}

func (h bsmHold) Context() context.Context         { return h.ctx }
func (h bsmHold) Unlock() error                    { return h.lock.Release(h.ctx) }
func (h bsmHold) Extend(ctx context.Context) error { return h.lock.Refresh(ctx, h.lease, nil) }
