package redislock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestOneHolderAtATimeAndNothingLeft holds locks ten thousand times, or REDISLOCK_PAIRS times, with contexts that end at any
// moment. There is one holder at a time, tokens grow, and no goroutine, connection, subscription, lock or place is left.
func TestOneHolderAtATimeAndNothingLeft(t *testing.T) {
	const lockers, goroutines, keys = 4, 10, 4
	server, inspector := ownServer(t)
	must(t, inspector.Ping(t.Context()).Err())
	before := runtime.NumGoroutine()
	var inside, last [keys]atomic.Int64
	var left atomic.Int64
	pairs, _ := strconv.ParseInt(os.Getenv("REDISLOCK_PAIRS"), 10, 64)
	left.Store(cmp.Or(pairs, 10_000))
	var all sync.WaitGroup
	var closers []func() error
	for range lockers {
		client := redis.NewClient(&redis.Options{Addr: server.addr, PoolSize: 32, ContextTimeoutEnabled: true, ReadTimeout: time.Minute})
		l := New(client, Options{Lease: 10 * time.Second})
		closers = append(closers, func() error { return cmp.Or(l.Close(context.Background()), client.Close()) })
		for range goroutines {
			all.Go(func() {
				for left.Add(-1) >= 0 {
					ctx, cancel := context.WithCancel(t.Context())
					switch rand.IntN(20) {
					case 0:
						cancel() // before
					case 1, 2, 3:
						time.AfterFunc(time.Duration(rand.IntN(2000))*time.Microsecond, cancel)
					}
					k := rand.IntN(keys)
					if _, lease, err := l.Acquire(ctx, fmt.Sprint(t.Name(), k)); err == nil {
						n, token := inside[k].Add(1), last[k].Swap(lease.Token())
						if time.Sleep(20 * time.Microsecond); n != 1 || token >= lease.Token() {
							t.Errorf("%d holders at once; token %d after %d", n, lease.Token(), token)
						}
						inside[k].Add(-1)
						if err := lease.Release(); err != nil && !errors.Is(err, ErrNotHeld) {
							t.Errorf("Release: %v", err)
						}
					} else if !errors.Is(err, context.Canceled) {
						t.Errorf("Acquire: %v", err)
					}
					cancel()
				}
			})
		}
	}
	all.Wait()
	for _, closeIt := range closers {
		if err := closeIt(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	eventually(t, "as few goroutines as before", func() bool { return runtime.NumGoroutine() <= before })
	eventually(t, "no connection but the one that looks", func() bool {
		return strings.Count(inspector.ClientList(t.Context()).Val(), "\n") == 1
	})
	if channels := inspector.PubSubChannels(t.Context(), "*").Val(); len(channels) > 0 {
		t.Errorf("subscriptions are left: %v", channels)
	}
	// The last epochs, and marks of cancelled attempts, stay for a minute on purpose.
	for _, key := range inspector.Keys(t.Context(), "*").Val() {
		ttl, marks := inspector.PTTL(t.Context(), key).Val(), strings.HasSuffix(key, ":waiters")
		for field := range inspector.HGetAll(t.Context(), key).Val() {
			marks = marks && strings.HasPrefix(field, "c:")
		}
		if ttl <= 0 || ttl > time.Minute || !marks && !strings.HasSuffix(key, ":epoch") {
			t.Errorf("%s is left, for %s", key, ttl)
		}
	}
}

// TestTheQueueLivesForTheLongestLease: a heartbeat sees to that, and those who come while others wait.
func TestTheQueueLivesForTheLongestLease(t *testing.T) {
	p := newPlay(t)
	patient := p.peers["C"]
	patient.lease = 10 * time.Minute
	keys := keysOf(p.n.name)
	live := func(what string) {
		t.Helper()
		for _, key := range []string{keys.Queue, keys.Waiters} {
			if left := p.client.PTTL(t.Context(), key).Val(); left <= patient.lease-time.Minute {
				t.Errorf("after %s, %s lives for %s, want %s", what, key, left, patient.lease)
			}
			p.client.PExpire(t.Context(), key, time.Minute)
		}
	}
	p.does("A acquires 1: held", "B acquires 1: waiting", "C acquires 1: waiting", "C beats 1: waiting")
	live("a heartbeat")
	for attempt := range 1000 { // one of 64 of those who are not the first
		p.does(fmt.Sprint("C acquires ", attempt+2, ": waiting"))
	}
	live("many requests")
}
