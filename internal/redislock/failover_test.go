package redislock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// moving is a primary and its replica behind one endpoint, as the providers of Redis have it.
type moving struct {
	t       *testing.T
	servers [2]*testServer
	clients [2]*redis.Client // of each server
	primary atomic.Int32
}

// startMoving starts them, the replica with these variables in its environment.
func startMoving(t *testing.T, env ...string) *moving {
	t.Helper()
	needsServer(t)
	m := &moving{t: t}
	for i := range m.servers {
		var err error
		m.servers[i], err = startServer(env[:i*len(env)], "--repl-diskless-sync-delay", "0")
		must(t, err)
		t.Cleanup(m.servers[i].stop)
		m.clients[i], _ = newClient(t, m.servers[i].addr)
	}
	host, port, _ := net.SplitHostPort(m.servers[0].addr)
	must(t, m.clients[1].ReplicaOf(t.Context(), host, port).Err())
	isReplica(t, m.clients[1])
	return m
}

func isReplica(t *testing.T, client *redis.Client) {
	t.Helper()
	eventually(t, "the replica has the primary's data", func() bool {
		return client.InfoMap(t.Context(), "replication").Item("Replication", "master_link_status") == "up"
	})
}

// failOver is planned: nothing is lost.
func (m *moving) failOver() {
	m.t.Helper()
	old, next := m.primary.Load(), 1-m.primary.Load()
	host, port, _ := net.SplitHostPort(m.servers[next].addr)
	eventually(m.t, "the failover begins", func() bool {
		return m.clients[old].Do(m.t.Context(), "FAILOVER", "TO", host, port).Err() == nil // not while the replica only just came
	})
	isReplica(m.t, m.clients[old])
	m.primary.Store(next)
	m.clients[old].Do(m.t.Context(), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
}

func (m *moving) locker(o Options) *Locker {
	return closing(m.t, New(toClose(m.t, redis.NewClient(&redis.Options{Addr: "primary:6379", ContextTimeoutEnabled: true, Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, m.servers[m.primary.Load()].addr)
	}})), o))
}

// TestPlannedFailoverMakesOneHolder: PUBLISH is replicated. A waiter whose subscription stays with
// the demoted server is not counted by the new primary, and still hears its grant.
func TestPlannedFailoverMakesOneHolder(t *testing.T) {
	t.Parallel()
	for name, seen := range map[string]bool{"the waiter has been seen since": true, "the waiter has not been seen since": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const lease = 6 * time.Second
			m := startMoving(t)
			waiters := func() map[string]string {
				return m.clients[m.primary.Load()].HGetAll(t.Context(), Keys("", t.Name()).Waiters).Val()
			}
			holder, a, b := m.locker(Options{Lease: lease}), m.locker(Options{Lease: lease}), m.locker(Options{Lease: lease})
			_, first := acquire(t, holder, within(t), t.Name())
			one := asks(t, within(t), a, t.Name())
			waitFor(t, m.servers[0].addr, t.Name(), 1)
			m.failOver()
			eventually(t, "the holder renews at the new primary", func() bool { return renew(first) })
			before := waiters()
			eventually(t, "the waiter is seen", func() bool { return !seen || !maps.Equal(before, waiters()) })
			other := asks(t, within(t), b, t.Name())
			waitFor(t, m.servers[1].addr, t.Name(), 2)
			release(t, first)
			var x *Lease
			select {
			case x = <-one:
			case x = <-other:
				other = one
			}
			select {
			case y := <-other:
				if x.Valid() && y.Valid() {
					t.Errorf("two holders, with the tokens %d and %d", x.Token(), y.Token())
				}
				release(t, y)
				release(t, x)
			case <-time.After(lease / 2): // there was a heartbeat
				release(t, x)
				release(t, <-other)
			}
		})
	}
}

// split is an endpoint that splits reads: it sends subscriptions to a replica.
type split struct {
	*redis.Client
	replica *redis.Client
}

func (s split) Subscribe(ctx context.Context, channels ...string) *redis.PubSub {
	return s.replica.Subscribe(ctx, channels...)
}

// TestSubscriptionsOfAReplica: the primary counts nobody who waits there, and still grants them the lock.
func TestSubscriptionsOfAReplica(t *testing.T) {
	t.Parallel()
	m := startMoving(t)
	const lease = time.Minute // a heartbeat is far away
	locker := func() *Locker { return closing(t, New(split{m.clients[0], m.clients[1]}, Options{Lease: lease})) }
	_, first := acquire(t, locker(), within(t), t.Name())
	one := asks(t, within(t), locker(), t.Name())
	waitFor(t, m.servers[0].addr, t.Name(), 1)
	other := asks(t, within(t), locker(), t.Name())
	waitFor(t, m.servers[0].addr, t.Name(), 2)
	release(t, first)
	release(t, soon(t, one, lease/6))
	release(t, soon(t, other, lease/6))
}

// TestARedisOutOfMemory refuses to note that somebody waits. That is sent together with the renewal of what is held,
// which goes on. Nobody waits for it, so that its release needs no memory.
func TestARedisOutOfMemory(t *testing.T) {
	t.Parallel()
	server, client := ownServer(t, "--maxmemory-policy", "noeviction")
	ctx, leave := context.WithCancel(within(t))
	l := closing(t, New(client, Options{Lease: 2 * time.Second, Hooks: Hooks{NotServed: func(context.Context, Event) { leave() }}}))
	other := closing(t, New(client, Options{Lease: time.Minute}))
	_, mine := acquire(t, l, within(t), t.Name())
	_, theirs := acquire(t, other, within(t), "theirs")
	waits := make(chan error, 1)
	go func() {
		_, _, err := l.Acquire(ctx, "theirs")
		waits <- err
	}()
	waitFor(t, server.addr, "theirs", 1)
	must(t, client.ConfigSet(t.Context(), "maxmemory", "1").Err())
	for who, err := range map[string]error{"a waiter": <-waits, "who asks": func() error { _, _, err := other.TryAcquire(within(t), "free"); return err }()} {
		if !errors.Is(err, ErrUnavailable) || !strings.Contains(fmt.Sprint(err), "OOM") {
			t.Errorf("%s gets %v, want ErrUnavailable and OOM", who, err)
		}
	}
	isRenewed(t, mine)
	release(t, mine)
	must(t, client.ConfigSet(t.Context(), "maxmemory", "0").Err())
	release(t, theirs)
	free(t, other)
}

// TestAPatternIsNoWaiter: a monitor's PSUBSCRIBE hears what is published to a dead waiter, and must
// not make it look alive.
func TestAPatternIsNoWaiter(t *testing.T) {
	t.Parallel()
	const lease = time.Minute // a heartbeat is far away
	ctx := within(t)
	monitor, _ := newClient(t, shared.addr)
	pattern := monitor.PSubscribe(ctx, "redislock:*")
	defer pattern.Close()
	_, err := pattern.Receive(ctx)
	must(t, err)
	holder, _ := newLocker(t, Options{Lease: lease})
	_, first := acquire(t, holder, ctx, t.Name())
	for range 3 { // processes that die while they wait
		client := redis.NewClient(&redis.Options{Addr: shared.addr, MaxRetries: -1})
		l := New(client, Options{Lease: lease})
		before := monitor.ZCard(ctx, Keys("", t.Name()).Queue).Val()
		go l.Acquire(ctx, t.Name())
		eventually(t, "it waits, and is visible", func() bool {
			return monitor.ZCard(ctx, Keys("", t.Name()).Queue).Val() > before && strings.HasSuffix(monitor.HGet(ctx, Keys("", t.Name()).Waiters, l.server.id).Val(), ":1")
		})
		client.Close()
		defer l.Close(context.Background())
		channel := l.server.channel()
		eventually(t, "Redis sees that it is gone", func() bool { return monitor.PubSubNumSub(ctx, channel).Val()[channel] == 0 })
	}
	alive, _ := newLocker(t, Options{Lease: lease})
	got := queues(t, alive, t.Name(), 4)
	release(t, first)
	release(t, soon(t, got, lease/6))
}

// shiftedClock compiles a library whose gettimeofday is so many seconds ahead: Redis takes its TIME from
// there. libfaketime does not start with a Redis that uses jemalloc.
func shiftedClock(t *testing.T, seconds int) string {
	t.Helper()
	source := fmt.Sprintf(`
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>
int gettimeofday(struct timeval *tv, void *tz) {
	int failed = syscall(SYS_gettimeofday, tv, tz);
	if (tv) tv->tv_sec += %d;
	return failed;
}`, seconds)
	if runtime.GOOS != "linux" {
		t.Skip("a clock can be set back for one process on Linux only")
	}
	library := filepath.Join(t.TempDir(), "slow_clock.so")
	compile := exec.Command("cc", "-shared", "-fPIC", "-x", "c", "-o", library, "-")
	compile.Stdin = strings.NewReader(source)
	if said, err := compile.CombinedOutput(); err != nil {
		t.Skipf("needs a C compiler: %v %s", err, said)
	}
	return library
}

// TestAFailoverToAFastClockIsSeen: Redis keeps expiries as times of its clock, so a hold has less of its
// lease left at a primary whose clock is ahead. Here it is less than a third of the lease: the hold goes on.
func TestAFailoverToAFastClockIsSeen(t *testing.T) {
	t.Parallel()
	m := startMoving(t, "LD_PRELOAD="+shiftedClock(t, 5))
	jumps := make(chan time.Duration, 8)
	l := m.locker(Options{Lease: 30 * time.Second, Hooks: Hooks{ClockJumped: func(by time.Duration) { jumps <- by }}})
	held, lease := acquire(t, l, within(t), t.Name())
	m.failOver()
	eventually(t, "something is said of the clock", func() bool { renew(lease); return len(jumps) > 0 })
	if by := <-jumps; by > 5*time.Second || by < 2500*time.Millisecond {
		t.Errorf("the clock jumped by %s, want five seconds", by)
	}
	if held.Err() != nil {
		t.Errorf("the hold ended: %v", context.Cause(held))
	}
	release(t, lease)
}

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
		watcher := toClose(t, redis.NewSentinelClient(&redis.Options{Addr: s.addr, MaxRetries: -1}))
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
		client := toClose(t, redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: "main", SentinelAddrs: sentinels, ContextTimeoutEnabled: true, DialTimeout: time.Second, ReadTimeout: time.Second,
		}))
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
