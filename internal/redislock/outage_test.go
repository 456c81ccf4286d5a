package redislock

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestOutageLeavesAsMuchAsItMay: what is to be cleaned up is bounded, and needs one goroutine.
func TestOutageLeavesAsMuchAsItMay(t *testing.T) {
	for name, outage := range map[string]func(w *wire){"silent": (*wire).cut, "refused": func(w *wire) {
		w.listener.Close()
		w.mu.Lock()
		for _, c := range w.conns {
			c.Close()
		}
		w.mu.Unlock()
	}} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t, shared.addr)
			client := redis.NewClient(&redis.Options{Addr: w.addr, ContextTimeoutEnabled: true, ReadTimeout: 3 * time.Second, DialTimeout: 3 * time.Second, MaxRetries: -1})
			t.Cleanup(func() { client.Close() })
			l := New(client, Options{Lease: 2 * time.Second}) // Close waits for as long
			_, lease := acquire(t, l, within(t), t.Name())
			release(t, lease)
			before := runtime.NumGoroutine()
			outage(w)
			var all sync.WaitGroup
			const calls = 3000
			for i := range calls {
				all.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
					defer cancel()
					l.TryAcquire(ctx, fmt.Sprint(t.Name(), i))
				})
				if i%20 == 19 {
					time.Sleep(2 * time.Millisecond)
				}
			}
			all.Wait()
			eventually(t, "the requests are over", func() bool { return runtime.NumGoroutine() < before+20 })
			l.mu.Lock()
			left := len(l.ending)
			l.mu.Unlock()
			if name == "refused" && left > 10 || left > calls { // a few were under way as the connections broke
				t.Errorf("%d attempts are to be cleaned up after %d calls", left, calls)
			}
			// Close does not wait for longer than its context.
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			begun := time.Now()
			err := l.Close(ctx)
			l.mu.Lock()
			left = len(l.ending) // less and less
			l.mu.Unlock()
			if left > 0 && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Close = %v while %d are left, want the end of its context", err, left)
			}
			if took := time.Since(begun); took > 5*time.Second {
				t.Errorf("Close took %s", took)
			}
			w.mend()
			l.Close(t.Context())
		})
	}
}

// TestAnOutageKeepsFewGoroutines: whoever gives up ends its request's wait for a connection, and leaves
// nothing to clean up, because that request was not sent. The client has go-redis' default timeouts.
func TestAnOutageKeepsFewGoroutines(t *testing.T) {
	w := newWire(t, shared.addr)
	client := redis.NewClient(&redis.Options{Addr: w.addr, PoolSize: 20})
	t.Cleanup(func() { client.Close() })
	l := New(client, Options{Lease: 4 * time.Second})
	_, lease := acquire(t, l, within(t), t.Name())
	release(t, lease)
	w.cut()
	before := runtime.NumGoroutine()
	const callers, connections = 50, 100 // more than the pool has
	patience := map[string]func(i int){
		"wait": func(i int) {
			l.AcquireWith(t.Context(), fmt.Sprint(t.Name(), i), AcquireOptions{Wait: 20 * time.Millisecond})
		},
		"context": func(i int) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(20*time.Millisecond, cancel)
			l.Acquire(ctx, fmt.Sprint(t.Name(), i))
		},
	}
	for name, try := range patience {
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				for range 50 {
					try(i)
				}
			})
		}
		all.Wait()
		if n := runtime.NumGoroutine() - before; n > callers+connections {
			t.Errorf("%s: after %d calls %d more goroutines", name, 50*callers, n)
		}
		l.mu.Lock()
		left := len(l.ending)
		l.unlock()
		if left > callers+connections {
			t.Errorf("%s: after %d calls %d attempts are to be cleaned up", name, 50*callers, left)
		}
	}
	w.mend()
	if err := l.Close(within(t)); err != nil {
		t.Error(err)
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
		if left != maxEnding {
			t.Errorf("%d attempts are remembered, want %d", left, maxEnding)
		}
		time.Sleep(2 * fakeLease)
		queued := l.queued()
		l.mu.Lock()
		defer l.unlock()
		if len(l.ending) != 0 || len(l.agenda) != 0 || queued != 0 {
			t.Errorf("after two leases %d attempts are left, %d looks, and %d that are due", len(l.ending), len(l.agenda), queued)
		}
	})
}
