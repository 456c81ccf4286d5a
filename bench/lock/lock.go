// Package lock has the locks that are compared: one adapter for each library, this repository's own,
// and the simplest ones that there are. The bench measures them, and a shop of package peers sells
// under them.
package lock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Lock is one implementation of a lock.
type Lock struct {
	Name string
	Doc  string
	// Tuning lists the bench's settings that differ from the library's defaults, and their source.
	Tuning string
	// Requests are the commands that the lock itself sends, by their names in INFO commandstats.
	// Redis also counts the calls of scripts there; these are not requests.
	Requests []string
	// Local locks exclude only goroutines of the same process.
	Local bool
	// Quorum is how many independent Redis servers it needs; 0 for one, or for none.
	Quorum int
	// Etcd says that its lock is in etcd.
	Etcd bool
	// Keeps says that holds are renewed, by the library or through [Hold.Extend].
	Keeps bool

	Open func(Config) (Locker, error)
}

// Config has the settings of Open.
type Config struct {
	Redis []redis.UniversalClient // of each of its servers, at least one
	Etcd  []string                // HOST:PORT each
	Lease time.Duration           // how long a lock lives without renewal
	Poll  time.Duration           // between two tries of a library that polls; 0 for its default
	Wait  time.Duration           // for a lock, where the library has a setting for that; 0 for no bound
}

// Locker acquires locks for one process. It is safe for concurrent use.
type Locker struct {
	// Lock waits until it holds the lock on key, or waiting ends. The hold works under ctx. The error
	// is [ErrTaken] where the lock was not free in time. A library calls the function of
	// [WithRefusal] when it finds the lock taken.
	Lock func(ctx, waiting context.Context, key string) (Hold, error)
	// Close closes the library's own client. It is nil where there is none.
	Close func() error
}

// WithRefusal returns a context for one call of Lock, which calls refused once, in the goroutine of the
// caller and before it returns. ctx is that of both parameters of Lock.
func WithRefusal(ctx context.Context, refused func()) context.Context {
	return context.WithValue(ctx, refusalKey{}, sync.OnceFunc(refused))
}

type refusalKey struct{}

// refusalOf returns the function of [WithRefusal], or nil.
func refusalOf(ctx context.Context) func() {
	refused, _ := ctx.Value(refusalKey{}).(func())
	return refused
}

// ErrTaken is the error of a lock that was not free in time.
var ErrTaken = errors.New("the lock was not free in time")

// Hold is an acquired lock.
type Hold struct {
	// Context ends when the lock is lost, if the library reports that.
	Context context.Context
	// Token grows with each holder; 0 without one.
	Token   int64
	Release func(context.Context) error
	// Extend begins a new lease. It is nil where the library renews by itself, or not at all.
	Extend func(context.Context) error
}

// Renewed extends a hold at every third of its lease until it is released, for libraries that leave
// that to the caller. An error of Extend ends the context of the hold, and is its cause. Each Extend has
// a deadline, because a lease can be shorter than the time for which a client waits for Redis.
func Renewed(h Hold, lease time.Duration) Hold {
	held, cancel := context.WithCancelCause(h.Context)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(lease / 3)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-held.Done():
				return
			}
			extending, done := context.WithTimeout(held, lease/3)
			err := h.Extend(extending)
			done()
			if err != nil {
				cancel(err)
				return
			}
		}
	}()
	return Hold{Context: held, Token: h.Token, Release: func(ctx context.Context) error {
		cancel(nil)
		<-ended
		return h.Release(ctx)
	}}
}

// All lists the locks in the order in which they are printed.
var All = []Lock{
	mutexLock,
	stocklockLock,
	Rueidis,
	BSM,
	Redsync,
	RueidisTwo,
	RedsyncFive,
	Etcd,
	polled("setnx-1ms", time.Millisecond),
	polled("setnx-10ms", 10*time.Millisecond),
	polled("setnx-50ms", 50*time.Millisecond),
	noLock,
}

// Place returns the index of a lock in [All], -1 where there is none of that name.
func Place(name string) int {
	return slices.IndexFunc(All, func(l Lock) bool { return l.Name == name })
}

// OnOneRedis says that it needs no other server.
func (l Lock) OnOneRedis() bool { return l.Quorum == 0 && !l.Etcd }

// Servers is how many Redis servers it has.
func (l Lock) Servers() int { return max(l.Quorum, 1) }

// NewClient returns a client for so many goroutines that may send a request at the same time.
func NewClient(addr string, goroutines int) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: addr, MaxRetries: -1, PoolSize: goroutines + 2, ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}
