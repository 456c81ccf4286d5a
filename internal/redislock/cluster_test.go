package redislock

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const slots = 16384

// startCluster starts masters and gives them the slots.
func startCluster(t *testing.T, masters int) []string {
	t.Helper()
	needsServer(t)
	var addrs []string
	var clients []*redis.Client
	for range masters {
		s, err := startServer("--cluster-enabled", "yes", "--cluster-node-timeout", "5000")
		must(t, err)
		t.Cleanup(s.stop)
		client, _ := newClient(t, s.addr)
		addrs, clients = append(addrs, s.addr), append(clients, client)
	}
	ctx := within(t)
	for i, c := range clients {
		must(t, c.ClusterAddSlotsRange(ctx, i*slots/masters, (i+1)*slots/masters-1).Err())
		host, port, _ := net.SplitHostPort(addrs[0])
		must(t, c.ClusterMeet(ctx, host, port).Err())
	}
	for _, c := range clients {
		for {
			info, err := c.ClusterInfo(ctx).Result()
			must(t, err)
			if strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprint("cluster_size:", masters)) {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	return addrs
}

func clusterLocker(t *testing.T, addrs []string, o Options) *Locker {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, ContextTimeoutEnabled: true})
	t.Cleanup(func() { client.Close() })
	return closing(t, New(client, o))
}

// TestCluster has processes fight for locks on all masters of a Redis Cluster.
func TestCluster(t *testing.T) {
	t.Parallel()
	addrs := startCluster(t, 3)
	o := Options{Lease: 6 * time.Second, Hooks: Hooks{Lost: func(_ context.Context, e Event) { t.Errorf("lost %q: %v", e.Key, e.Err) }}}
	const keys, rounds = 5, 20
	var inside atomic.Int64
	var all sync.WaitGroup
	for range 2 {
		l := clusterLocker(t, addrs, o)
		all.Go(func() {
			for i := range rounds * keys {
				_, lease := acquire(t, l, within(t), fmt.Sprint(t.Name(), i%keys))
				if n := inside.Add(1 << (8 * (i % keys))); n>>(8*(i%keys))&0xff != 1 {
					t.Errorf("%d holders at once", n)
				}
				inside.Add(-1 << (8 * (i % keys)))
				release(t, lease)
			}
		})
	}
	all.Wait()

	// Renewal goes to each lock's own master.
	l := clusterLocker(t, addrs, o)
	var held []*Lease
	for k := range keys {
		_, lease := acquire(t, l, within(t), fmt.Sprint(t.Name(), "renewed", k))
		defer release(t, lease)
		held = append(held, lease)
	}
	isRenewed(t, held...)
}
