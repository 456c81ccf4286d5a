package lock

import (
	"context"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

var rueidisLock = Lock{
	Name:     "rueidislock",
	Doc:      "github.com/redis/rueidis/rueidislock v1.0.79: waits for invalidations of client-side caching",
	Tuning:   "KeyMajority 1 for one server, and NoLoopTracking; both as its README says",
	Requests: []string{"evalsha", "eval"},
	Keeps:    true,
	Open: func(c Config) (Locker, error) {
		locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
			ClientOption:   rueidis.ClientOption{InitAddress: []string{c.Addr}},
			KeyValidity:    c.Lease,
			KeyMajority:    1,
			NoLoopTracking: true,
		})
		return rueidisLocker{locker}, err
	},
}

type rueidisLocker struct{ locker rueidislock.Locker }

func (l rueidisLocker) Lock(ctx context.Context, key string) (Hold, error) {
	held, release, err := l.locker.WithContext(ctx, key)
	if err != nil {
		return nil, err
	}
	return rueidisHold{held, release}, nil
}

func (l rueidisLocker) Close() error {
	l.locker.Close()
	return nil
}

type rueidisHold struct {
	held    context.Context
	release context.CancelFunc
}

func (h rueidisHold) Context() context.Context { return h.held }

func (h rueidisHold) Unlock() error {
	lost := h.held.Err()
	h.release()
	return lost
}
