package peers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	etcd "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"stocklock/internal/strategy"
)

const (
	etcdModule = "go.etcd.io/etcd/client/v3"
	etcdSource = "the package concurrency of the etcd client: NewSession, NewMutex, Lock, Unlock; a session for each sale, because a session is the holder"
	etcdWhy    = "https://etcd.io/docs/v3.5/learning/why/#notes-on-the-usage-of-lock-and-lease"
)

// etcdLock is what etcd's lock declares. Its lease is in etcd, which keeps it on disk. It is not aware of
// every loss: its client trusts a session that has had no answer yet for DialTimeout and a second,
// however short its lease is, and looks for others once a second.
var etcdLock = strategy.Properties{
	Has: strategy.DurableAnswers | strategy.Exclusive | strategy.Recovers | strategy.AtomicLease | strategy.Renews |
		strategy.OwnerChecked | strategy.AtomicRelease | strategy.ClockFree,
	NotApplicable: strategy.Reentrant | strategy.SurvivesDataLoss,
}

const (
	etcdNotes = "[etcd versus other key-value stores](" + etcdWhy + ")"
	etcdMend  = "the resource compares revisions: [etcd-fenced](#etcd-fenced)"
)

var notInRedis = map[string]string{
	"nested": asksItself["nested"], "clock-skew": ownClock,
	"failover": elsewhere, "redis-restart": elsewhere, "eviction": elsewhere,
}

const elsewhere = "its lock is in etcd, which has no copies that lag and keeps what it has acknowledged on disk; the scenario breaks Redis"

func etcdPlain(s *Settings) Peer {
	return Peer{
		Module: etcdModule,
		Strategy: strategy.Strategy{
			Name:          "etcd",
			Doc:           "the lock of etcd's package concurrency: a key under a lease that its session keeps alive; waiters queue by revision",
			Source:        etcdSource,
			Guard:         "concurrency.Mutex, a session each",
			Decrement:     "read-then-write",
			Telling:       "pause",
			Properties:    etcdLock,
			Inapplicable:  notInRedis,
			NeedsEtcd:     true,
			OwnClient:     true,
			ShortestLease: etcdShortest,
			Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
				return etcdGuard(d, s.Etcd), strategy.ReadThenWrite
			},
		},
		Notes: map[string]Note{
			"partition": {
				Says: "Both of the server and client measures passing of time with their own clocks. " +
					"It allows a situation that the server revokes the lease but the client still claims it owns the lease.",
				Where: etcdNotes + ". The client trusts a session that has had no answer yet for DialTimeout and a second, here 3 s. " +
					"After the first answer it looks once a second whether the lease is over. An answer right before the cut hides it: the client then learns in time",
				Mend: etcdMend,
			},
			"pause": {
				Says:  "However, the lock APIs cannot be used as mutual exclusion mechanism by themselves. … The lock feature of etcd itself cannot be used for protecting external resources.",
				Where: etcdNotes,
				Mend:  etcdMend,
			},
		},
	}
}

func etcdFenced(s *Settings) Peer {
	properties := etcdLock
	properties.Has |= strategy.StorageChecked
	return Peer{
		Module: etcdModule,
		Strategy: strategy.Strategy{
			Name:          "etcd-fenced",
			Doc:           "etcd's lock, with the revision at which it was acquired as the fencing token that the database compares",
			Source:        etcdSource + "; \"fencing token is revision number in the case of etcd\", " + etcdWhy,
			Guard:         "concurrency.Mutex, a session each",
			Decrement:     "raise the fence to the revision, read, write where the fence is one's own",
			Telling:       "pause",
			Properties:    properties,
			Inapplicable:  notInRedis,
			NeedsEtcd:     true,
			OwnClient:     true,
			ShortestLease: etcdShortest,
			Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
				return etcdGuard(d, s.Etcd), strategy.FencedReadThenWrite
			},
		},
	}
}

// etcdShortest is the shortest lease that etcd's clients can ask for.
const etcdShortest = time.Second

const etcdDial = 2 * time.Second

// EtcdClient opens a client of the etcd at these addresses, HOST:PORT each.
func EtcdClient(addresses []string) (*etcd.Client, error) {
	return etcd.New(etcd.Config{Endpoints: addresses, DialTimeout: etcdDial, Logger: zap.NewNop()})
}

func etcdGuard(d strategy.Deps, addresses []string) strategy.Guard {
	client, err := EtcdClient(addresses)
	if err != nil {
		err = fmt.Errorf("etcd: %w: set --etcd (SHOP_ETCD)", err)
		return guard{library: library{lock: func(context.Context, context.Context, string) (hold, error) { return hold{}, err }}}
	}
	// The client renews from its first session on, and that session at once. Later ones have their first
	// renewal within half a second, as in a process that has sold before.
	_, _ = client.KeepAlive(client.Ctx(), etcd.NoLease)
	ttl := int(math.Ceil(d.Lease.Seconds())) // etcd counts leases in seconds
	return guard{wait: d.Wait, library: library{close: client.Close, lock: func(ctx, waiting context.Context, key string) (hold, error) {
		living, end := context.WithCancel(context.WithoutCancel(ctx))
		stop := context.AfterFunc(waiting, end)
		session, mutex, err := EtcdLock(living, client, ttl, key)
		if inTime := stop(); err != nil || !inTime {
			end()
			go EtcdAbandon(client, session, ttl)
			return hold{}, fmt.Errorf("%w: %w", errTaken, errors.Join(err, context.Cause(waiting)))
		}
		held, cancel := context.WithCancel(ctx)
		forget := context.AfterFunc(session.Ctx(), cancel)
		return hold{ctx: held, token: mutex.Header().Revision, release: func(ctx context.Context) error {
			defer end()
			defer cancel()
			forget()
			ctx, done := context.WithTimeout(ctx, time.Duration(ttl)*time.Second) // then the lease is over
			defer done()
			err := mutex.Unlock(ctx)
			_, revoked := client.Revoke(ctx, session.Lease())
			return errors.Join(err, revoked)
		}}, nil
	}}}
}

// EtcdLock acquires the lock with a session of its own, whose lease has so many seconds, and waits
// until ctx ends. The session ends with ctx, too.
func EtcdLock(ctx context.Context, client *etcd.Client, ttl int, key string) (*concurrency.Session, *concurrency.Mutex, error) {
	session, err := concurrency.NewSession(client, concurrency.WithTTL(ttl), concurrency.WithContext(ctx))
	if err != nil {
		return nil, nil, err
	}
	mutex := concurrency.NewMutex(session, key)
	return session, mutex, mutex.Lock(ctx)
}

// EtcdAbandon revokes the lease of a session that did not get the lock, and with it the place in the
// queue. The session may be nil.
func EtcdAbandon(client *etcd.Client, session *concurrency.Session, ttl int) {
	if session == nil {
		return
	}
	ctx, cancel := context.WithTimeout(client.Ctx(), time.Duration(ttl)*time.Second)
	defer cancel()
	_, _ = client.Revoke(ctx, session.Lease()) // it ends by itself if this fails
}
