package peers

import (
	"fmt"
	"time"

	"stocklock/bench/lock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/strategy/ladder"
)

const (
	etcdSource = "the package concurrency of the etcd client: NewSession, NewMutex, Lock, Unlock; a session for each sale, where a process could keep its sessions"
	etcdWhy    = "https://etcd.io/docs/v3.5/learning/why/#notes-on-the-usage-of-lock-and-lease"
)

// etcdLock is what etcd's lock declares. Its lease is in etcd, which keeps it on disk. It is not aware of
// every loss: its client trusts a session that has had no answer yet for DialTimeout and a second,
// however short its lease is, and looks for others once a second.
var etcdLock = declared.Properties{
	Has:           polledLock | declared.Renews,
	NotApplicable: declared.Reentrant | declared.SurvivesDataLoss,
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
		Module: "go.etcd.io/etcd/client/v3",
		Rung: ladder.Declare(strategy.Strategy{
			Name:          "etcd",
			Doc:           "the lock of etcd's package concurrency: a key under a lease that its session keeps alive; waiters queue by revision",
			ShortestLease: etcdShortest,
			Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
				return etcdGuard(d, s.Etcd), strategy.ReadThenWrite
			},
		}, declared.Strategy{
			Source:       etcdSource,
			Guard:        "concurrency.Mutex, a session each",
			Decrement:    "read-then-write",
			Telling:      "pause",
			Properties:   etcdLock,
			Inapplicable: notInRedis,
			NeedsEtcd:    true,
			OwnClient:    true,
		}),
		Notes: map[string]Note{
			"partition": {
				Says: "Both of the server and client measures passing of time with their own clocks. " +
					"It allows a situation that the server revokes the lease but the client still claims it owns the lease.",
				Where: etcdNotes + ". The client trusts a session that has had no answer yet for DialTimeout and a second, here 3 s. Here, each sale has a new session, which often has had no answer. " +
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
	p := etcdPlain(s)
	p.Name = "etcd-fenced"
	p.Doc = "etcd's lock, with the revision at which it was acquired as the fencing token that the database compares"
	p.Declared.Source += "; \"fencing token is revision number in the case of etcd\", " + etcdWhy
	p.Declared.Decrement = "raise the fence to the revision, read, write where the fence is one's own"
	p.Declared.Has |= declared.StorageChecked
	p.Build = func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return etcdGuard(d, s.Etcd), strategy.FencedReadThenWrite
	}
	p.Notes = nil
	return p
}

// etcdShortest is the shortest lease that etcd's clients can ask for.
const etcdShortest = time.Second

func etcdGuard(d strategy.Deps, addresses []string) guard {
	g := guardOf(lock.Etcd, d, lock.Config{Etcd: addresses})
	if g.err != nil {
		g.err = fmt.Errorf("etcd: %w: set --etcd (SHOP_ETCD)", g.err)
	}
	return g
}
