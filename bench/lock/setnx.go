package lock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// polled is the pattern of the Redis documentation: SET NX PX with a random value, retried after a
// pause, and a script that deletes the key if it still has that value.
func polled(name string, pause time.Duration) Lock {
	return Lock{
		Name:     name,
		Doc:      fmt.Sprintf("SET NX PX, retried every %s; a script compares and deletes", pause),
		Tuning:   "none",
		Requests: []string{"set", "evalsha", "eval"},
		Open: func(c Config) (Locker, error) {
			return &setnx{newClient(c), pause, c.Lease}, nil
		},
	}
}

var compareAndDelete = redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)

var errNotHeld = errors.New("setnx: not held")

type setnx struct {
	client *redis.Client
	pause  time.Duration
	lease  time.Duration
}

func (l *setnx) Lock(ctx context.Context, key string) (Hold, error) {
	value := rand.Text()
	for {
		ok, err := l.client.SetNX(ctx, key, value, l.lease).Result()
		if err != nil {
			return nil, err
		}
		if ok {
			return setnxHold{ctx, l.client, key, value}, nil
		}
		select {
		case <-time.After(l.pause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (l *setnx) Close() error { return l.client.Close() }

type setnxHold struct {
	ctx        context.Context
	client     *redis.Client
	key, value string
}

func (h setnxHold) Context() context.Context { return h.ctx }

func (h setnxHold) Unlock() error {
	n, err := compareAndDelete.Run(h.ctx, h.client, []string{h.key}, h.value).Int()
	if err == nil && n == 0 {
		err = errNotHeld
	}
	return err
}
