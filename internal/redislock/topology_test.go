package redislock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// slotMove is a Cluster of two, and a slot that goes from one to the other, as redis-cli --cluster
// reshard does it.
type slotMove struct {
	t      *testing.T
	addrs  []string
	from   *redis.Client
	to     *redis.Client
	fromID string
	toID   string
	key    string // of a lock in the slot
	slot   int64
}

func startSlotMove(t *testing.T) *slotMove {
	m := &slotMove{t: t, addrs: startCluster(t, 2)}
	m.from, _ = newClient(t, m.addrs[0])
	m.to, _ = newClient(t, m.addrs[1])
	m.fromID, _ = m.from.Do(t.Context(), "CLUSTER", "MYID").Text()
	m.toID, _ = m.to.Do(t.Context(), "CLUSTER", "MYID").Text()
	for i := 0; ; i++ {
		m.key = fmt.Sprint("moved", i)
		if m.slot = m.from.ClusterKeySlot(t.Context(), tagged(m.key)).Val(); m.slot < slots/2-1 {
			return m
		}
	}
}

func (m *slotMove) do(c *redis.Client, args ...any) {
	m.t.Helper()
	if err := c.Do(m.t.Context(), args...).Err(); err != nil {
		m.t.Fatalf("%v: %v", args, err)
	}
}

func (m *slotMove) begin() {
	m.t.Helper()
	m.do(m.to, "CLUSTER", "SETSLOT", m.slot, "IMPORTING", m.fromID)
	m.do(m.from, "CLUSTER", "SETSLOT", m.slot, "MIGRATING", m.toID)
}

// move moves one key, if it is there still.
func (m *slotMove) move(key string) {
	m.t.Helper()
	host, port, _ := net.SplitHostPort(m.addrs[1])
	if err := m.from.Migrate(m.t.Context(), host, port, key, 0, time.Second).Err(); err != nil {
		m.t.Fatalf("MIGRATE %s: %v", key, err)
	}
}

func (m *slotMove) end() {
	m.t.Helper()
	for _, key := range m.from.ClusterGetKeysInSlot(m.t.Context(), int(m.slot), 100).Val() {
		m.move(key)
	}
	m.do(m.to, "CLUSTER", "SETSLOT", m.slot, "NODE", m.toID)
	m.do(m.from, "CLUSTER", "SETSLOT", m.slot, "NODE", m.toID)
}

func (m *slotMove) locker(o Options) *Locker { return clusterLocker(m.t, m.addrs, o) }

// TestASlotIsMoved key by key, or at once, as Valkey 9 and Redis 8.4 do it: a hold survives. A request that comes
// meanwhile is repeated within its caller's patience.
func TestASlotIsMoved(t *testing.T) {
	for name, move := range map[string]func(m *slotMove, mine *Lease) error{
		"key by key": func(m *slotMove, mine *Lease) error {
			m.begin()
			isRenewed(m.t, mine)
			m.move(Keys("", m.key).Lock) // the rest stays behind for a while
			isRenewed(m.t, mine)
			second := "{" + m.key + "}second" // in the slot, and unknown there
			_, _, err := m.locker(Options{Wait: time.Second}).Acquire(m.t.Context(), second)
			if err != nil && !errors.Is(err, ErrUnavailable) {
				m.t.Errorf("Acquire in a slot that is being moved = %v, want the lock or ErrUnavailable", err)
			}
			m.end()
			return nil
		},
		"Valkey 9": func(m *slotMove, _ *Lease) error {
			return m.from.Do(m.t.Context(), "CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", m.slot, m.slot, "NODE", m.toID).Err()
		},
		"Redis 8.4": func(m *slotMove, _ *Lease) error {
			return m.to.Do(m.t.Context(), "CLUSTER", "MIGRATION", "IMPORT", m.slot, m.slot).Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := startSlotMove(t)
			const lease = 6 * time.Second
			_, mine := acquire(t, m.locker(Options{Lease: lease}), within(t), m.key)
			got := asks(t, within(t), m.locker(Options{Lease: lease}), m.key)
			waitFor(t, m.addrs[0], m.key, 1)
			if err := move(m, mine); redis.HasErrorPrefix(err, "unknown subcommand") {
				t.Skip("this server has no such move:", err)
			} else {
				must(t, err)
			}
			eventually(t, "the slot has moved", func() bool {
				return m.to.ClusterCountKeysInSlot(t.Context(), int(m.slot)).Val() > 0 && m.from.ClusterCountKeysInSlot(t.Context(), int(m.slot)).Val() == 0
			})
			if isRenewed(t, mine); len(got) > 0 {
				t.Error("two holders")
			}
			release(t, mine)
			release(t, soon(t, got, lease))
		})
	}
}

// TestAScriptThatEmptiesAKeyInAMovingSlot: such a key is not the server's any more, and whatever
// the script asks of it fails. The lock must not be given to somebody who is not notified.
func TestAScriptThatEmptiesAKeyInAMovingSlot(t *testing.T) {
	t.Parallel()
	m := startSlotMove(t)
	keys := Keys("", m.key)
	n := lockOn(m.key)
	holder, waiter := newPeer(m.from, time.Minute), newPeer(m.from, time.Minute)
	fill := func() { // so that all keys are there, and the last waiter empties two of them
		t.Helper()
		m.from.Del(t.Context(), keys.all()...)
		for _, p := range []peer{holder, waiter} {
			_, err := p.send(t.Context(), acquireScript, n, 1, 0)
			must(t, err)
		}
	}
	owner := func() string { return holderIn(t, m.from, keys.Lock).owner }
	for name, request := range map[string]func() (reply, error){
		"release": func() (reply, error) { return holder.do(t.Context(), releaseScript, n, 1) },
		"cancel":  func() (reply, error) { return holder.send(t.Context(), cancelScript, n, 1) },
	} {
		fill()
		channel := m.from.Subscribe(t.Context(), waiter.channel())
		_, err := channel.Receive(t.Context())
		must(t, err)
		messages := channel.Channel()
		m.begin()
		_, err = request()
		if owner() != waiter.id {
			t.Errorf("%s: %v; the lock is with %q, want the waiter", name, err, owner())
		}
		select {
		case message := <-messages:
			if !strings.HasPrefix(message.Payload, "granted 1 ") {
				t.Errorf("%s: the waiter was sent %q", name, message.Payload)
			}
		case <-time.After(5 * time.Second):
			t.Errorf("%s: %v; the waiter was not notified", name, err)
		}
		channel.Close()
		m.do(m.to, "CLUSTER", "SETSLOT", m.slot, "STABLE")
		m.do(m.from, "CLUSTER", "SETSLOT", m.slot, "STABLE")
	}

	// The last waiter is gone: the script empties the lock, the queue and its records.
	fill()
	m.from.HSet(t.Context(), keys.Waiters, waiter.id, "1:1:60000:0")
	m.begin()
	if _, err := holder.do(t.Context(), releaseScript, n, 1); err != nil {
		t.Errorf("release past a dead waiter: %v", err)
	}
	m.do(m.to, "CLUSTER", "SETSLOT", m.slot, "STABLE")
	m.do(m.from, "CLUSTER", "SETSLOT", m.slot, "STABLE")
	if owner() != "" {
		t.Errorf("the lock is with %q, want nobody", owner())
	}
	m.from.Del(t.Context(), keys.all()...)
}

const slots = 16384

// startCluster starts masters and gives them the slots.
func startCluster(t *testing.T, masters int) []string {
	t.Helper()
	var addrs []string
	var clients []*redis.Client
	for range masters {
		s, client := ownServer(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "5000")
		addrs, clients = append(addrs, s.addr), append(clients, client)
	}
	ctx := within(t)
	for i, c := range clients {
		must(t, c.ClusterAddSlotsRange(ctx, i*slots/masters, (i+1)*slots/masters-1).Err())
		host, port, _ := net.SplitHostPort(addrs[0])
		must(t, c.ClusterMeet(ctx, host, port).Err())
	}
	for _, c := range clients {
		eventually(t, "the master knows the others", func() bool {
			info := c.ClusterInfo(ctx).Val()
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprint("cluster_size:", masters))
		})
	}
	return addrs
}

func clusterLocker(t *testing.T, addrs []string, o Options) *Locker {
	return closing(t, New(toClose(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, ContextTimeoutEnabled: true})), o))
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
				time.Sleep(200 * time.Microsecond) // in which another one would be seen
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
