package lock

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/go-redsync/redsync/v4"
	syncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

var redsyncLock = Lock{
	Name:     "redsync",
	Doc:      "github.com/go-redsync/redsync/v4 v4.18.1 on one server: polls with SET NX, and deletes its value after each failed attempt",
	Tuning:   "WithRetryDelay(1 ms) instead of 50 to 250 ms, WithTries without end instead of 32; renewed with Extend at a third of the lease",
	Requests: []string{"set", "evalsha", "eval"},
	Keeps:    true,
	Open:     func(c Config) (Locker, error) { return redsyncOn(c, c.Addr), nil },
}

var redsyncFiveLock = Lock{
	Name:     "redsync-five",
	Doc:      "github.com/go-redsync/redsync/v4 v4.18.1 on a majority of five servers",
	Tuning:   redsyncLock.Tuning,
	Requests: redsyncLock.Requests,
	Quorum:   5,
	Open:     func(c Config) (Locker, error) { return redsyncOn(c, c.Quorum...), nil },
}

func redsyncOn(c Config, servers ...string) *redsyncLocker {
	l := &redsyncLocker{lease: c.Lease}
	var pools []syncredis.Pool
	for _, c.Addr = range servers {
		client := newClient(c)
		l.clients, pools = append(l.clients, client), append(pools, goredis.NewPool(client))
	}
	l.locker = redsync.New(pools...)
	return l
}

type redsyncLocker struct {
	clients []*redis.Client
	locker  *redsync.Redsync
	lease   time.Duration
}

func (l *redsyncLocker) Lock(ctx context.Context, key string) (Hold, error) {
	m := l.locker.NewMutex(key, redsync.WithExpiry(l.lease), redsync.WithTries(math.MaxInt), redsync.WithRetryDelay(time.Millisecond))
	if err := m.LockContext(ctx); err != nil {
		return nil, err
	}
	return redsyncHold{ctx, m}, nil
}

func (l *redsyncLocker) Close() error {
	var errs []error
	for _, client := range l.clients {
		errs = append(errs, client.Close())
	}
	return errors.Join(errs...)
}

type redsyncHold struct {
	ctx context.Context
	m   *redsync.Mutex
}

var errNotExtended = errors.New("redsync: not extended")

func (h redsyncHold) Context() context.Context { return h.ctx }

func (h redsyncHold) Unlock() error {
	_, err := h.m.UnlockContext(h.ctx)
	return err
}

func (h redsyncHold) Extend(ctx context.Context) error {
	ok, err := h.m.ExtendContext(ctx)
	if err == nil && !ok {
		err = errNotExtended
	}
	return err
}
