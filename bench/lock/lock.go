// Package lock has the locks that are measured, each in a file of its own and set
// up as its documentation says.
package lock

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Lock is one way to lock.
type Lock struct {
	Name string
	Doc  string
	// Tuning is what was set, other than a library's defaults, and on whose word.
	Tuning string
	// Requests are the commands that it sends itself, as INFO commandstats calls them. What its
	// scripts call is counted there too, but is no request.
	Requests []string
	// Local locks only keep goroutines of one process apart.
	Local bool
	// Keeps says that holds are renewed: by the library, or by [Extender].
	Keeps bool

	Open func(Config) (Locker, error)
}

// Config is what a lock is opened with.
type Config struct {
	Addr       string        // of Redis
	Lease      time.Duration // how long a lock lives without renewal
	Goroutines int           // how many want locks at the same time
}

// Locker takes locks for one process. It is safe for concurrent use.
type Locker interface {
	// Lock waits until it holds the lock on key, or ctx is done.
	Lock(ctx context.Context, key string) (Hold, error)
	Close() error
}

// Hold is a lock that is held.
type Hold interface {
	// Context ends when the lock is lost, where the library tells that.
	Context() context.Context
	Unlock() error
}

// Extender is a [Hold] that its holder has to renew.
type Extender interface {
	Extend(ctx context.Context) error
}

// All are the locks in the order in which they are printed.
var All = []Lock{
	mutexLock,
	stocklockLock,
	rueidisLock,
	bsmLock,
	redsyncLock,
	polled("setnx-1ms", time.Millisecond),
	polled("setnx-10ms", 10*time.Millisecond),
	polled("setnx-50ms", 50*time.Millisecond),
	noLock,
}

// newClient connects as all locks on go-redis do, with a connection for each goroutine
// that may ask at the same time.
func newClient(c Config) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: c.Addr, MaxRetries: -1, PoolSize: c.Goroutines + 2, ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}
