package lock

import (
	"context"

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
		client := newClient(c)
		return &stocklocker{client, redislock.New(client, redislock.Options{Lease: c.Lease})}, nil
	},
}

type stocklocker struct {
	client *redis.Client
	locker *redislock.Locker
}

func (l *stocklocker) Lock(ctx context.Context, key string) (Hold, error) {
	held, lease, err := l.locker.Acquire(ctx, key)
	if err != nil {
		return nil, err
	}
	return stocklockHold{held, lease}, nil
}

func (l *stocklocker) Close() error {
	_ = l.locker.Close(context.Background())
	return l.client.Close()
}

type stocklockHold struct {
	held  context.Context
	lease *redislock.Lease
}

func (h stocklockHold) Context() context.Context { return h.held }
func (h stocklockHold) Unlock() error            { return h.lease.Release() }
