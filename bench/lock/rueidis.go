package lock

import (
	"context"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"stocklock/bench/peers"
)

var rueidisLock = Lock{
	Name:     "rueidislock",
	Doc:      "github.com/redis/rueidis/rueidislock v1.0.79: waits for invalidations of client-side caching",
	Tuning:   "KeyMajority 1 for one server, and NoLoopTracking; both as its README says",
	Requests: []string{"evalsha", "eval"},
	Keeps:    true,
	Open: func(c Config) (Locker, error) {
		return rueidisOn(rueidislock.LockerOption{KeyMajority: 1, ClientOption: rueidis.ClientOption{InitAddress: []string{c.Addr}}}, c.Lease)
	},
}

var rueidisTwoLock = Lock{
	Name:     "rueidislock-two-of-three",
	Doc:      "github.com/redis/rueidis/rueidislock v1.0.79 with three keys, each on a server of its own",
	Tuning:   "KeyMajority 2, which is its default, and NoLoopTracking",
	Requests: rueidisLock.Requests,
	Quorum:   3,
	Open: func(c Config) (Locker, error) {
		return rueidisOn(rueidislock.LockerOption{KeyMajority: 2, ClientOption: rueidis.ClientOption{InitAddress: c.Quorum},
			ClientBuilder: peers.KeyByKey}, c.Lease)
	},
}

func rueidisOn(o rueidislock.LockerOption, lease time.Duration) (Locker, error) {
	o.KeyValidity, o.NoLoopTracking = lease, true
	locker, err := rueidislock.NewLocker(o)
	return rueidisLocker{locker}, err
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
