package lock

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	etcd "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

// Etcd is the lock of etcd's package concurrency. Its token is the revision at which it was acquired.
var Etcd = Lock{
	Name:   "etcd",
	Doc:    "go.etcd.io/etcd/client/v3/concurrency v3.7.3: a Mutex under a lease; waiters queue by revision",
	Tuning: "a Session for each hold: a process that keeps one for each lock that it holds at the same time saves its two writes",
	Etcd:   true,
	Open: func(c Config) (Locker, error) {
		client, err := etcd.New(etcd.Config{Endpoints: c.Etcd, DialTimeout: etcdDial, Logger: zap.NewNop()})
		if err != nil {
			return Locker{}, err
		}
		// The client renews from its first session on, and that session at once. Later ones have their
		// first renewal within half a second, as in a process that has sold before.
		_, _ = client.KeepAlive(client.Ctx(), etcd.NoLease)
		client.Watcher = refusableWatcher{client.Watcher}
		l := etcdLock{client, time.Duration(math.Ceil(c.Lease.Seconds())) * time.Second}
		return Locker{Lock: l.lock, Close: client.Close}, nil
	},
}

// etcdDial bounds the connecting. The client also trusts a session without an answer for so long.
const etcdDial = 2 * time.Second

type etcdLock struct {
	client *etcd.Client
	lease  time.Duration // in whole seconds, in which etcd counts
}

// lock acquires the lock with a session of its own: two holders of one session would hold its locks together. It is not kept for the
// next hold.
func (l etcdLock) lock(ctx, waiting context.Context, key string) (Hold, error) {
	living, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(waiting, end)
	session, err := concurrency.NewSession(l.client,
		concurrency.WithTTL(int(l.lease.Seconds())), concurrency.WithContext(living))
	var mutex *concurrency.Mutex
	if err == nil {
		mutex = concurrency.NewMutex(session, key)
		err = mutex.Lock(living)
	}
	if inTime := stop(); err != nil || !inTime {
		end()
		if session != nil {
			go l.revoke(l.client.Ctx(), session) // it ends by itself if this fails
		}
		return Hold{}, fmt.Errorf("%w: %w", ErrTaken, errors.Join(err, context.Cause(waiting)))
	}
	held, cancel := context.WithCancel(ctx)
	forget := context.AfterFunc(session.Ctx(), cancel)
	return Hold{Context: held, Token: mutex.Header().Revision, Release: func(ctx context.Context) error {
		defer end()
		defer cancel()
		forget()
		ctx, done := context.WithTimeout(ctx, l.lease) // then the lease is over
		defer done()
		return errors.Join(mutex.Unlock(ctx), l.revoke(ctx, session))
	}}, nil
}

// refusableWatcher is a Watcher of locks: the library watches a key only while it waits for another
// holder.
type refusableWatcher struct{ etcd.Watcher }

func (w refusableWatcher) Watch(ctx context.Context, key string, options ...etcd.OpOption) etcd.WatchChan {
	if refused := refusalOf(ctx); refused != nil {
		refused()
	}
	return w.Watcher.Watch(ctx, key, options...)
}

// revoke ends the lease of a session, and with it its lock or its place in the queue.
func (l etcdLock) revoke(ctx context.Context, session *concurrency.Session) error {
	ctx, cancel := context.WithTimeout(ctx, l.lease)
	defer cancel()
	_, err := l.client.Revoke(ctx, session.Lease())
	return err
}
