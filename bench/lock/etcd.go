package lock

import (
	"context"
	"errors"
	"time"

	etcd "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"stocklock/bench/peers"
)

var etcdLock = Lock{
	Name:   "etcd",
	Doc:    "go.etcd.io/etcd/client/v3/concurrency v3.7.3: a Mutex under a lease; waiters queue by revision",
	Tuning: "a Session for each hold, because a session is the holder",
	Etcd:   true,
	Open: func(c Config) (Locker, error) {
		client, err := peers.EtcdClient([]string{c.Etcd})
		return etcdLocker{client, int(c.Lease.Seconds())}, err
	},
}

type etcdLocker struct {
	client *etcd.Client
	ttl    int // in seconds
}

func (l etcdLocker) Lock(ctx context.Context, key string) (Hold, error) {
	session, mutex, err := peers.EtcdLock(ctx, l.client, l.ttl, key)
	if err != nil {
		go peers.EtcdAbandon(l.client, session, l.ttl)
		return nil, err
	}
	return etcdHold{session, mutex}, nil
}

func (l etcdLocker) Close() error { return l.client.Close() }

type etcdHold struct {
	session *concurrency.Session
	mutex   *concurrency.Mutex
}

func (h etcdHold) Context() context.Context { return h.session.Ctx() }

func (h etcdHold) Unlock() error {
	ctx, cancel := context.WithTimeout(h.session.Client().Ctx(), etcdPatience)
	defer cancel()
	return errors.Join(h.mutex.Unlock(ctx), h.session.Close())
}

// etcdPatience bounds a release.
const etcdPatience = 10 * time.Second
