package redislock

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestWantOfMemoryCostsNoHold: a server without memory refuses to note that somebody waits, and
// that is renewed together with what is held.
func TestWantOfMemoryCostsNoHold(t *testing.T) {
	redisServer, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	defer redisServer.stop()
	client, _ := newClient(t, redisServer.addr)
	s, holder := newPeer(client, time.Minute), newPeer(client, time.Minute)
	mine, theirs := lockOn("mine"), lockOn("theirs")
	for _, request := range []func() (reply, error){
		func() (reply, error) { return s.acquire(t.Context(), mine, 1, false, 0) },
		func() (reply, error) { return holder.acquire(t.Context(), theirs, 1, false, 0) },
		func() (reply, error) { return s.acquire(t.Context(), theirs, 2, true, 0) },
	} {
		if _, err := request(); err != nil {
			t.Fatal(err)
		}
	}
	client.ConfigSet(t.Context(), "maxmemory", "1")
	if r, err := s.heartbeat(t.Context(), theirs, 2); !definite(err) {
		t.Errorf("heartbeat = %+v, %v, want it refused", r, err)
	}
	if r, err := s.renew(t.Context(), mine, 1); err != nil || r.kind != replyHeld {
		t.Errorf("renewal = %+v, %v, want it held", r, err)
	}
}

// TestNamesLeaveNothing: what Redis keeps of a lock that nobody wants any more is gone after its
// lease or a minute, whichever is longer, however many names were used.
func TestNamesLeaveNothing(t *testing.T) {
	t.Parallel()
	redisServer, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redisServer.stop)
	client, _ := newClient(t, redisServer.addr)
	used := func() int {
		n, err := strconv.Atoi(client.InfoMap(t.Context(), "memory").Item("Memory", "used_memory"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for name, c := range map[string]struct{ lease, kept time.Duration }{
		"a short lease": {5 * time.Second, time.Minute},
		"a long one":    {5 * time.Minute, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := newLockerAt(t, redisServer.addr, Options{Lease: c.lease})
			const names = 2000
			useAll := func() {
				var all sync.WaitGroup
				for i := range 4 {
					all.Go(func() {
						p := newPeer(client, c.lease)
						for i := i; i < names; i += 4 {
							n := lockOn(fmt.Sprint("name", i))
							_, lease := acquire(t, l, within(t), n.name)
							waits := func() {
								if r, err := p.acquire(t.Context(), n, 1, true, 0); err != nil || r.kind != replyWaiting {
									t.Errorf("acquire = %+v, %v, want it to wait", r, err)
								}
							}
							cancels := func() {
								if err := p.cancel(t.Context(), n, 1); err != nil {
									t.Error(err)
								}
							}
							switch i % 10 {
							case 0: // somebody waits, and gives up
								waits()
								cancels()
							case 1: // what is cancelled never came to Redis
								cancels()
							case 2: // who waits dies, and the lock is lost
								waits()
								if err := client.Del(t.Context(), keysOf(n.name).Lock).Err(); err != nil {
									t.Error(err)
								}
								if err := lease.Release(); !errors.Is(err, ErrNotHeld) {
									t.Errorf("Release = %v, want ErrNotHeld", err)
								}
								continue
							}
							release(t, lease)
						}
					})
				}
				all.Wait()
			}
			useAll() // connections and scripts take memory, too
			client.FlushAll(t.Context())
			before, begun := used(), client.Time(t.Context()).Val()
			useAll()
			t.Logf("%d bytes a name", (used()-before)/names)
			if n := client.DBSize(t.Context()).Val(); n != names+4*names/10 {
				t.Errorf("%d keys for %d names, want the epoch of each, a mark for each attempt that was cancelled, and two for each waiter that died", n, names)
			}
			for _, key := range client.Keys(t.Context(), "*").Val() {
				until := time.UnixMilli(client.PExpireTime(t.Context(), key).Val().Milliseconds())
				usedAt := until.Add(-c.kept)
				if usedAt.Before(begun.Add(-time.Millisecond)) || usedAt.After(client.Time(t.Context()).Val()) || strings.HasSuffix(key, ":lock") {
					t.Fatalf("%s is kept until %s, want the epoch and the marks only, for %s after their use from %s on", key, until, c.kept, begun)
				}
			}
			letPass(t, client, c.kept)
			if n := client.DBSize(t.Context()).Val(); n != 0 {
				t.Errorf("%d keys are left after %s", n, c.kept)
			}
			eventually(t, "Redis has its memory back", func() bool { return used()-before < 10*names })
		})
	}
}

// letPass has the keys of a server expire as if so much time had passed.
func letPass(t *testing.T, client *redis.Client, d time.Duration) {
	t.Helper()
	_, err := client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for _, key := range client.Keys(t.Context(), "*").Val() {
			if left := client.PTTL(t.Context(), key).Val(); left > 0 {
				p.PExpire(t.Context(), key, left-d)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTheQueueLivesForTheLongestLease: a heartbeat sees to that, and those who come while others wait.
func TestTheQueueLivesForTheLongestLease(t *testing.T) {
	holder, waiter, patient := newScripted(t), newScripted(t), newScripted(t)
	patient.lease = 10 * time.Minute
	client, _ := newClient(t, shared.addr)
	keys := keysOf(holder.n.name)
	live := func(what string) {
		t.Helper()
		for _, key := range []string{keys.Queue, keys.Waiters} {
			if left := client.PTTL(t.Context(), key).Val(); left <= patient.lease-time.Minute {
				t.Errorf("after %s, %s lives for %s, want %s", what, key, left, patient.lease)
			}
		}
	}
	holder.acquires(1, true, replyHeld)
	waiter.acquires(1, true, replyWaiting)
	patient.acquires(1, true, replyWaiting)
	if r, err := patient.heartbeat(t.Context(), patient.n, 1); err != nil || r.kind != replyWaiting {
		t.Fatalf("heartbeat = %+v, %v", r, err)
	}
	live("a heartbeat")
	client.PExpire(t.Context(), keys.Queue, time.Minute)
	client.PExpire(t.Context(), keys.Waiters, time.Minute)
	for attempt := range uint64(1000) { // one of 64 of those who are not the first
		patient.acquires(attempt+2, true, replyWaiting)
	}
	live("many requests")
}
