package redislock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestNothingLeaks takes and gives back locks thirty thousand times, with contexts that end at
// any moment, and looks at what is left: no goroutine, connection, subscription, lock or place in a
// queue.
func TestNothingLeaks(t *testing.T) {
	const pairs, lockers, goroutines, keys = 30_000, 3, 12, 5
	server, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.stop)
	inspector, _ := newClient(t, server.addr)
	if err := inspector.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	var left, cancelled atomic.Int64
	left.Store(pairs)
	var all sync.WaitGroup
	var closers []func() error
	for range lockers {
		client := redis.NewClient(&redis.Options{Addr: server.addr, PoolSize: 32, ContextTimeoutEnabled: true, ReadTimeout: time.Minute})
		l := New(client, Options{Lease: 5 * time.Second})
		closers = append(closers, func() error { return l.Close(context.Background()) }, client.Close)
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
					_, lease, err := l.Acquire(ctx, fmt.Sprint(t.Name(), rand.IntN(keys)))
					switch {
					case err == nil:
						if err := lease.Release(); err != nil && !errors.Is(err, ErrNotHeld) {
							t.Errorf("Release: %v", err)
						}
					case errors.Is(err, ErrNotAcquired):
						cancelled.Add(1)
					default:
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
	t.Logf("%d pairs, %d of them cancelled", pairs, cancelled.Load())
	eventually(t, "as few goroutines as before", func() bool { return runtime.NumGoroutine() <= before })
	eventually(t, "no connection but the one that looks", func() bool {
		list := strings.TrimSpace(inspector.ClientList(t.Context()).Val())
		return strings.Count(list, "\n") == 0
	})
	if channels := inspector.PubSubChannels(t.Context(), "*").Val(); len(channels) > 0 {
		t.Errorf("subscriptions are left: %v", channels)
	}
	// The last epochs, and marks of cancelled attempts, stay for a minute on purpose.
	for _, key := range inspector.Keys(t.Context(), "*").Val() {
		if ttl := inspector.PTTL(t.Context(), key).Val(); ttl <= 0 || ttl > time.Minute {
			t.Errorf("%s lives for %s, want a minute at most", key, ttl)
		}
		switch {
		case strings.HasSuffix(key, ":epoch"):
		case strings.HasSuffix(key, ":waiters"):
			for field := range inspector.HGetAll(t.Context(), key).Val() {
				if !strings.HasPrefix(field, "c:") {
					t.Errorf("%s still has a waiter, %s", key, field)
				}
			}
		default:
			t.Errorf("%s is left", key)
		}
	}
}
