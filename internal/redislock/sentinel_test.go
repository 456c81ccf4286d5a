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

// startSentinels starts a primary, a replica of it, and three sentinels that watch them.
func startSentinels(t *testing.T) (primary, replica *testServer, sentinels []string) {
	t.Helper()
	primary, _ = ownServer(t, "--repl-diskless-sync-delay", "0")
	host, port, _ := net.SplitHostPort(primary.addr)
	replica, client := ownServer(t, "--replicaof", host, port, "--repl-diskless-sync-delay", "0")
	isReplica(t, client)
	var watchers []*redis.SentinelClient
	for range 3 {
		s, own, err := newServerDir()
		must(t, err)
		config := fmt.Sprintf("port %s\nbind 127.0.0.1\nsentinel monitor main %s %s 2\nsentinel down-after-milliseconds main 500\nsentinel failover-timeout main 3000\n", own, host, port)
		path := filepath.Join(s.dir, "sentinel.conf")
		must(t, os.WriteFile(path, []byte(config), 0o600))
		must(t, s.run(path, "--sentinel"))
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
		l := closing(t, New(client, Options{Lease: 2 * time.Second}))
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
	everybodyHolds := func() {
		for i := range holds {
			want := holds[i].Load() + 20
			eventually(t, "each process holds again and again", func() bool { return holds[i].Load() >= want })
		}
	}
	everybodyHolds()
	primary.stop()
	client, _ := newClient(t, replica.addr)
	eventually(t, "the replica is the primary", func() bool {
		return client.InfoMap(t.Context(), "replication").Item("Replication", "role") == "master"
	})
	everybodyHolds()
	for _, channel := range ids {
		eventually(t, "each process listens at the new primary", func() bool {
			return client.PubSubNumSub(t.Context(), channel).Val()[channel] == 1
		})
	}
	stop()
	all.Wait()
}
