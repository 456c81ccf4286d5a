package redislock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestUnconfirmedSubscriptionIsATimeout lets requests through and messages not: the caller must
// be able to tell it from a defect.
func TestUnconfirmedSubscriptionIsATimeout(t *testing.T) {
	t.Parallel()
	w := newWire(t, shared.addr)
	w.set(true)
	direct, _ := newClient(t, shared.addr)
	holder, _ := newLocker(t, Options{})
	_, lease := acquire(t, holder, within(t), t.Name())
	defer lease.Release()
	l := closing(t, New(apart{direct, defaults(t, w.addr, time.Second), over().Done()}, Options{Lease: time.Second}))
	_, _, err := l.Acquire(within(t), t.Name())
	if timeout, ok := errors.AsType[net.Error](err); !ok || !timeout.Timeout() || !strings.Contains(err.Error(), "nothing was done") {
		t.Errorf("Acquire = %v, want a timeout, and that nothing was done", err)
	}
}

// TestAnOutageLeavesFewGoroutines: whoever gives up ends its request's wait for a connection, and leaves nothing
// to clean up, because that request was not sent. The client has go-redis' default timeouts.
func TestAnOutageLeavesFewGoroutines(t *testing.T) {
	for name, outage := range map[string]func(w *wire){"silent": func(w *wire) { w.set(true) }, "refused": func(w *wire) { w.listener.Close(); w.breaks() }} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t, shared.addr)
			l := New(toClose(t, redis.NewClient(&redis.Options{Addr: w.addr, PoolSize: 20, MaxRetries: -1})), Options{Lease: 4 * time.Second})
			free(t, l)
			before := runtime.NumGoroutine()
			outage(w)
			const callers, connections = 50, 100 // more than the pool has
			var all sync.WaitGroup
			for i := range callers {
				all.Go(func() {
					for range 25 {
						l.AcquireWith(t.Context(), fmt.Sprint(t.Name(), i), AcquireOptions{Wait: 20 * time.Millisecond})
						ctx, cancel := context.WithCancel(t.Context())
						time.AfterFunc(20*time.Millisecond, cancel)
						l.TryAcquire(ctx, fmt.Sprint(t.Name(), i))
					}
				})
			}
			all.Wait()
			ending := func() int { return len(l.ending) }
			left := under(l, ending)
			if n := runtime.NumGoroutine() - before; n > callers+connections || left > callers+connections {
				t.Errorf("after %d calls there are %d more goroutines, and %d attempts to be cleaned up", 50*callers, n, left)
			}
			// Close does not wait for longer than its context.
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			begun := time.Now()
			err := l.Close(ctx)
			left = under(l, ending) // less and less
			if left > 0 && !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) > 5*time.Second {
				t.Errorf("Close = %v after %s while %d are left, want the end of its context", err, time.Since(begun), left)
			}
			w.set(false)
			l.Close(t.Context())
		})
	}
}

// TestOutagesLeaveABoundedRest: what is to be ended in the background beyond so much is left to its
// lease, and each of these has its turn no longer than that.
func TestOutagesLeaveABoundedRest(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		f.answers(cancelScript, noAnswer)
		l.mu.Lock()
		for i := range uint64(2 * maxEnding) {
			l.cleanLocked(newLock("k"), i+1, fakeLease)
		}
		left := len(l.ending)
		l.unlock()
		time.Sleep(2 * fakeLease)
		queued := l.queued()
		l.mu.Lock()
		defer l.unlock()
		if left != maxEnding || len(l.ending) != 0 || len(l.agenda) != 0 || queued != 0 {
			t.Errorf("%d attempts were remembered; after two leases %d are left, %d looks, and %d that are due", left, len(l.ending), len(l.agenda), queued)
		}
	})
}

func TestEvictionIsTold(t *testing.T) {
	told := make(chan string, 3)
	first, _ := newClient(t, shared.addr)
	_, second := ownServer(t, "--maxmemory-policy", "volatile-lru")
	policy := ""
	for _, client := range []*redis.Client{first, second} {
		l := New(client, Options{Hooks: Hooks{Evicts: func(policy string) { told <- policy }}})
		for range 3 {
			free(t, l)
		}
		if client == second {
			policy = <-told
		}
		l.Close(within(t))
	}
	if policy != "volatile-lru" || len(told) > 0 {
		t.Errorf("the policy is %q; it was told %d times more", policy, len(told))
	}
}

// TestAPanicOfTheClientEndsNoProcess: nobody waits for the request whose hook panics.
func TestAPanicOfTheClientEndsNoProcess(t *testing.T) {
	client, _ := newClient(t, shared.addr)
	r := &panicker{command: "info"}
	r.says("on purpose")
	client.AddHook(sees(r.see))
	l := closing(t, New(client, Options{Hooks: Hooks{Evicts: func(string) {}}}))
	_, lease := acquire(t, l, within(t), t.Name())
	eventually(t, "the policy was asked for", func() bool { return r.asked.Load() > 0 })
	release(t, lease)
}
