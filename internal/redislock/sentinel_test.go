package redislock

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// eventually waits for something that must come, generously: the machine may be busy.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for until := time.Now().Add(60 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("after a minute, still not: %s", what)
		}
	}
}

// startSentinels starts a primary, a replica of it, and three sentinels that watch them.
func startSentinels(t *testing.T) (primary, replica *testServer, sentinels []string) {
	t.Helper()
	needsServer(t)
	start := func(args ...string) *testServer {
		s, err := startServer(append(args, "--repl-diskless-sync-delay", "0")...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.stop)
		return s
	}
	primary = start()
	host, port, _ := net.SplitHostPort(primary.addr)
	replica = start("--replicaof", host, port)
	client, _ := newClient(t, replica.addr)
	eventually(t, "the replica has the primary's data", func() bool {
		return client.InfoMap(t.Context(), "replication").Item("Replication", "master_link_status") == "up"
	})
	var watchers []*redis.SentinelClient
	for range 3 {
		s, own, err := newServerDir()
		if err != nil {
			t.Fatal(err)
		}
		config := fmt.Sprintf("port %s\nbind 127.0.0.1\nsentinel monitor main %s %s 2\nsentinel down-after-milliseconds main 500\nsentinel failover-timeout main 3000\n", own, host, port)
		path := filepath.Join(s.dir, "sentinel.conf")
		if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.run(path, "--sentinel"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.stop)
		watcher := redis.NewSentinelClient(&redis.Options{Addr: s.addr, MaxRetries: -1})
		t.Cleanup(func() { watcher.Close() })
		sentinels, watchers = append(sentinels, s.addr), append(watchers, watcher)
	}
	eventually(t, "each sentinel knows the others and the replica", func() bool {
		for _, w := range watchers {
			others, _ := w.Sentinels(t.Context(), "main").Result()
			replicas, _ := w.Replicas(t.Context(), "main").Result()
			if len(others) < 2 || len(replicas) < 1 || w.CkQuorum(t.Context(), "main").Err() != nil {
				return false
			}
		}
		return true
	})
	return primary, replica, sentinels
}

// TestSentinelFailover kills the primary while processes work under a lock. They must get it
// again from the new one, with larger tokens, and listen there.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	primary, replica, sentinels := startSentinels(t)
	const lockers = 3
	var all sync.WaitGroup
	var holds [lockers]atomic.Int64
	var ids []string
	var mu sync.Mutex
	var last int64
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for i := range lockers {
		client := redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: "main", SentinelAddrs: sentinels, ContextTimeoutEnabled: true, DialTimeout: time.Second, ReadTimeout: time.Second,
		})
		t.Cleanup(func() { client.Close() })
		l := New(client, Options{Lease: 2 * time.Second})
		t.Cleanup(func() { l.Close(context.Background()) })
		ids = append(ids, l.server.channel())
		for range 2 {
			all.Go(func() {
				for ctx.Err() == nil {
					held, lease, err := l.Acquire(ctx, t.Name())
					if err != nil {
						time.Sleep(10 * time.Millisecond) // there is no primary
						continue
					}
					mu.Lock()
					if held.Err() == nil && lease.Token() <= last {
						t.Errorf("token %d after %d", lease.Token(), last)
					}
					last = max(last, lease.Token())
					mu.Unlock()
					time.Sleep(time.Millisecond)
					holds[i].Add(1)
					lease.Release() // of a primary that is gone, this says so
				}
			})
		}
	}
	everybodyHolds := func(more int64) {
		t.Helper()
		for i := range holds {
			want := holds[i].Load() + more
			eventually(t, fmt.Sprintf("process %d has held the lock %d times more", i, more), func() bool { return holds[i].Load() >= want })
		}
	}
	everybodyHolds(20)
	begun := time.Now()
	primary.stop()
	client, _ := newClient(t, replica.addr)
	eventually(t, "the replica is the primary", func() bool {
		return client.InfoMap(t.Context(), "replication").Item("Replication", "role") == "master"
	})
	promoted := time.Since(begun)
	everybodyHolds(20)
	t.Logf("the replica was promoted after %s; everybody had held again 20 times after %s", promoted.Round(time.Millisecond), time.Since(begun).Round(time.Millisecond))
	for _, channel := range ids {
		eventually(t, "each process listens at the new primary", func() bool {
			return client.PubSubNumSub(t.Context(), channel).Val()[channel] == 1
		})
	}
	stop()
	all.Wait()
}

// TestSubscriptionThatStaysBehindIsNoticed moves a client's requests to another server and leaves
// its subscription where it was, as happens when the old primary is cut off and lives on. Nobody
// there hears of grants, so the waiter would lose its place each time it is its turn.
func TestSubscriptionThatStaysBehindIsNoticed(t *testing.T) {
	t.Parallel()
	const length = time.Second
	var servers [2]*testServer
	for i := range servers {
		s, err := startServer()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.stop)
		servers[i] = s
	}
	var primary atomic.Pointer[testServer]
	primary.Store(servers[0])
	client := redis.NewClient(&redis.Options{MaxRetries: -1, Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, primary.Load().addr)
	}})
	t.Cleanup(func() { client.Close() })
	l := New(client, Options{Lease: length})
	t.Cleanup(func() { l.Close(context.Background()) })

	_, lease := acquire(t, l, within(t), t.Name())
	waited := make(chan struct{})
	go func() { // has the subscription opened, at the old primary
		defer close(waited)
		_, lease := acquire(t, l, within(t), t.Name())
		release(t, lease)
	}()
	eventually(t, "the Locker listens", l.hears)
	release(t, lease)
	<-waited

	old, _ := newClient(t, servers[0].addr)
	primary.Store(servers[1])
	old.Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	eventually(t, "requests go to the new primary", func() bool {
		return client.Ping(t.Context()).Err() == nil
	})

	// Others keep the lock busy, so that it is never free to be taken, only handed on.
	ctx, stop := context.WithCancel(t.Context())
	var others sync.WaitGroup
	for range 2 {
		other, _ := newLockerAt(t, servers[1].addr, Options{Lease: length})
		others.Go(func() {
			for ctx.Err() == nil {
				if _, lease, err := other.Acquire(ctx, t.Name()); err == nil {
					time.Sleep(5 * time.Millisecond)
					lease.Release()
				}
			}
		})
	}
	direct, _ := newClient(t, servers[1].addr)
	moved := func() bool {
		return direct.PubSubNumSub(t.Context(), l.server.channel()).Val()[l.server.channel()] == 1
	}
	begun := time.Now()
	for patient := within(t); !moved(); { // a hold or two may be had without waiting
		_, lease := acquire(t, l, patient, t.Name())
		release(t, lease)
	}
	t.Logf("the subscription moved after %s", time.Since(begun).Round(time.Millisecond))
	stop()
	others.Wait()
}
