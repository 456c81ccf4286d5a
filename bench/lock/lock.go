// Package lock contains the measured locks, one in each file, with the settings that its
// documentation recommends.
package lock

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Lock is one implementation of a lock.
type Lock struct {
	Name string
	Doc  string
	// Tuning lists the settings that differ from the library's defaults, and their source.
	Tuning string
	// Requests are the commands that the lock itself sends, by their names in INFO commandstats.
	// Redis also counts the calls of scripts there; these are not requests.
	Requests []string
	// Local locks exclude only goroutines of the same process.
	Local bool
	// Quorum is how many independent Redis servers it needs besides the one that all have.
	Quorum int
	// Etcd says that its lock is in etcd.
	Etcd bool
	// Keeps says that holds are renewed, by the library or through [Extender].
	Keeps bool

	Open func(Config) (Locker, error)
}

// Config has the settings of Open.
type Config struct {
	Addr       string        // address of Redis
	Quorum     []string      // addresses of independent Redis servers
	Etcd       string        // address of etcd
	Lease      time.Duration // how long a lock lives without renewal
	Goroutines int           // number of goroutines that acquire locks at the same time
}

// Locker acquires locks for one process. It is safe for concurrent use.
type Locker interface {
	// Lock waits until it holds the lock on key or ctx is done.
	Lock(ctx context.Context, key string) (Hold, error)
	Close() error
}

// Hold is an acquired lock.
type Hold interface {
	// Context ends when the lock is lost, if the library reports that.
	Context() context.Context
	Unlock() error
}

// Extender is a [Hold] that the holder must renew itself.
type Extender interface {
	Extend(ctx context.Context) error
}

// All lists the locks in the order in which they are printed.
var All = []Lock{
	mutexLock,
	stocklockLock,
	rueidisLock,
	bsmLock,
	redsyncLock,
	rueidisTwoLock,
	redsyncFiveLock,
	etcdLock,
	polled("setnx-1ms", time.Millisecond),
	polled("setnx-10ms", 10*time.Millisecond),
	polled("setnx-50ms", 50*time.Millisecond),
	noLock,
}

// OnOneRedis says that it needs no other server.
func (l Lock) OnOneRedis() bool { return l.Quorum == 0 && !l.Etcd }

// newClient returns the client of all locks that use go-redis. It has a connection for each
// goroutine that may send a request at the same time.
func newClient(c Config) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: c.Addr, MaxRetries: -1, PoolSize: c.Goroutines + 2, ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}
