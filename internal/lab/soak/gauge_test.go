package soak

import (
	"context"
	"testing"
	"time"

	"stocklock/internal/redislock"
	"stocklock/internal/shop"
	"stocklock/internal/testserver"
)

// TestLocksInUseAreCounted: plain ones, those of package redislock, and who waits for one.
func TestLocksInUseAreCounted(t *testing.T) {
	server, err := testserver.Start(t).Redis(t.Context(), testserver.RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	client, err := shop.OpenRedis(server.URL(), shop.RedisPoolSize)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	holder, waiter := redislock.New(client, redislock.Options{}), redislock.New(client, redislock.Options{})
	defer holder.Close(context.Background())
	defer waiter.Close(context.Background())
	client.Set(t.Context(), "plain", "somebody", time.Minute)
	_, lease, err := holder.Acquire(t.Context(), "reference")
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Release()
	ctx, cancel := context.WithCancel(t.Context())
	waits := make(chan struct{})
	go func() {
		waiter.Acquire(ctx, "reference")
		close(waits)
	}()
	defer func() { cancel(); <-waits }()
	names := map[string]bool{"plain": true, "reference": true, "unused": true}
	for giveUp := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		var g Gauges
		if err := gaugeRedis(t.Context(), server, names, &g); err != nil {
			t.Fatal(err)
		}
		if g.Locks == 2 && g.Waiters == 1 && g.KeysForEver == 0 && g.KeysThatExpire == 5 {
			return
		}
		if time.Now().After(giveUp) {
			t.Fatalf("counted %+v, want two locks, one waiter, and the five keys of both", g)
		}
	}
}
