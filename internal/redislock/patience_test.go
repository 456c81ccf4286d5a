package redislock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// defaults connects with the options that go-redis has by default, but for a shorter timeout.
func defaults(t *testing.T, addr string, timeout time.Duration) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: timeout, WriteTimeout: timeout})
	t.Cleanup(func() { client.Close() })
	return client
}

// closing has a Locker closed at the end of a test, however silent its Redis is.
func closing(t *testing.T, l *Locker) *Locker {
	t.Cleanup(func() { l.Close(context.Background()) })
	return l
}

// mend lets a wire go on.
func (w *wire) mend() {
	w.cutUp.Store(false)
	w.cutDown.Store(false)
}

// TestAcquireReturnsWhenItsCallerDoes: also with a client that waits for an answer for longer.
func TestAcquireReturnsWhenItsCallerDoes(t *testing.T) {
	t.Parallel()
	const patience = 100 * time.Millisecond
	for name, call := range map[string]func(l *Locker) error{
		"Wait": func(l *Locker) error {
			_, _, err := l.AcquireWith(t.Context(), t.Name(), AcquireOptions{Wait: patience})
			return err
		},
		"deadline": func(l *Locker) error {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, _, err := l.Acquire(ctx, t.Name())
			return err
		},
		"cancelled": func(l *Locker) error {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(patience, cancel)
			_, _, err := l.Acquire(ctx, t.Name())
			return err
		},
		"try": func(l *Locker) error {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, _, err := l.TryAcquire(ctx, t.Name())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t, shared.addr)
			l := closing(t, New(defaults(t, w.addr, 2*time.Second), Options{Lease: 2 * time.Second}))
			_, lease := acquire(t, l, t.Context(), t.Name())
			release(t, lease)
			w.cut()
			defer w.mend()
			begun := time.Now()
			if err := call(l); !errors.Is(err, ErrNotAcquired) {
				t.Errorf("Acquire = %v, want ErrNotAcquired", err)
			}
			if took := time.Since(begun); took < patience || took > 20*patience {
				t.Errorf("Acquire returned after %s, want %s", took, patience)
			}
		})
	}
}

// TestWaitersShareATimeout, and no other error.
func TestWaitersShareATimeout(t *testing.T) {
	t.Parallel()
	const timeout = time.Second
	w := newWire(t, shared.addr)
	l := closing(t, New(defaults(t, w.addr, timeout), Options{Lease: 10 * time.Second}))
	_, lease := acquire(t, l, t.Context(), t.Name()+"warm")
	release(t, lease)
	w.cut()
	defer w.mend()
	begun := time.Now()
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			_, _, err := l.Acquire(context.Background(), t.Name())
			if network, ok := errors.AsType[net.Error](err); !ok || !network.Timeout() {
				t.Errorf("Acquire = %v, want a timeout", err)
			}
		})
	}
	all.Wait()
	if took := time.Since(begun); took > 3*timeout { // the first request, and one for those who came after it
		t.Errorf("six waiters failed within %s, want within two timeouts of %s", took, timeout)
	}
}

// TestOtherErrorsAreTheAskersOwn: those who wait beside it ask anew.
func TestOtherErrorsAreTheAskersOwn(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		answered := make(chan struct{})
		var asked atomic.Int64
		f.answers(acquireScript, func(context.Context) (any, error) {
			if asked.Add(1) == 1 {
				<-answered
				return nil, errDown
			}
			return heldReply, nil
		})
		l.subscription = &subscription{close: func() {}, since: l.now() + time.Hour}
		var failures atomic.Int64
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				_, lease, err := l.Acquire(t.Context(), "k")
				if err != nil {
					failures.Add(1)
					return
				}
				release(t, lease)
			})
		}
		synctest.Wait()
		close(answered)
		all.Wait()
		if n := failures.Load(); n != 1 {
			t.Errorf("%d of six callers failed with the error of one request", n)
		}
	})
}

// TestWhoDoesNotShareATimeout: a caller that came after the request was sent, and those whose asker
// wanted to wait for less than a request may take.
func TestWhoDoesNotShareATimeout(t *testing.T) {
	for name, asker := range map[string]time.Duration{"who came later": never, "an impatient asker": time.Second} {
		t.Run(name, func(t *testing.T) {
			withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
				l.subscription = &subscription{close: func() {}, since: l.now() + time.Hour}
				f.answers(acquireScript, noAnswer)
				var all sync.WaitGroup
				all.Go(func() {
					if _, _, err := l.AcquireWith(t.Context(), "k", AcquireOptions{Wait: asker}); err == nil {
						t.Error("the asker was answered")
					}
				})
				synctest.Wait()
				if asker == never {
					time.Sleep(time.Second)
				}
				all.Go(func() {
					_, lease, err := l.Acquire(t.Context(), "k")
					if err != nil {
						t.Errorf("Acquire = %v, want that it asks anew", err)
						return
					}
					release(t, lease)
				})
				synctest.Wait()
				f.answers(acquireScript, nil) // Redis is back for the next request
				all.Wait()
			})
		})
	}
}

// refuser answers the lock's requests with an error of Redis.
type refuser struct {
	error atomic.Pointer[string]
	asked atomic.Int64
	panic bool
}

func (r *refuser) DialHook(next redis.DialHook) redis.DialHook { return next }
func (r *refuser) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (r *refuser) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if text := r.error.Load(); text != nil && (cmd.Name() == "evalsha" || cmd.Name() == "eval") {
			r.asked.Add(1)
			if r.panic {
				r.error.Store(nil)
				panic(*text)
			}
			cmd.SetErr(redisError(*text))
			return redisError(*text)
		}
		return next(ctx, cmd)
	}
}

type redisError string

func (e redisError) Error() string { return string(e) }
func (redisError) RedisError()     {}

func (r *refuser) says(text string) { r.error.Store(&text) }

// TestRefusalsAreDefinite: nothing was carried out, so there is nothing to cancel. Those that will
// pass are asked again, for as long as the caller waits.
func TestRefusalsAreDefinite(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"OOM command not allowed when used memory > 'maxmemory'.", "MISCONF Errors writing to the AOF file", "NOREPLICAS Not enough good replicas to write."} {
		client, _ := newClient(t, shared.addr)
		r := &refuser{}
		client.AddHook(r)
		l := closing(t, New(client, Options{}))
		r.says(text)
		_, _, err := l.Acquire(within(t), t.Name())
		if err == nil || !strings.Contains(err.Error(), "nothing was done: "+text[:3]) || errors.Is(err, ErrNotAcquired) {
			t.Errorf("Acquire = %v, want that it was refused", err)
		}
		time.Sleep(50 * time.Millisecond)
		if n := r.asked.Load(); n != 1 {
			t.Errorf("%d requests, want the one that was refused, and nothing cancelled", n)
		}
	}
	for _, text := range []string{"TRYAGAIN Multiple keys request during rehashing of slot", "CLUSTERDOWN The cluster is down", "LOADING Redis is loading the dataset in memory",
		"MASTERDOWN Link with MASTER is down", "READONLY You can't write against a read only replica."} {
		client := redis.NewClient(&redis.Options{Addr: shared.addr, MaxRetries: -1})
		defer client.Close()
		r := &refuser{}
		client.AddHook(r)
		l := closing(t, New(client, Options{Lease: time.Second}))
		r.says(text)
		_, _, err := l.AcquireWith(t.Context(), t.Name(), AcquireOptions{Wait: 300 * time.Millisecond})
		if !errors.Is(err, ErrNotAcquired) || !strings.Contains(err.Error(), text) || r.asked.Load() < 2 {
			t.Errorf("Acquire = %v after %d requests, want ErrNotAcquired with %q after several", err, r.asked.Load(), text)
		}
		if _, _, err := l.TryAcquire(t.Context(), t.Name()); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("TryAcquire = %v, want %q", err, text)
		}
		time.AfterFunc(100*time.Millisecond, func() { r.error.Store(nil) })
		_, lease := acquire(t, l, within(t), t.Name())
		r.says(text)
		time.AfterFunc(100*time.Millisecond, func() { r.error.Store(nil) })
		release(t, lease)
	}
}

// TestPanicsLeaveNothingBehind: in a hook, ours or the client's, while the caller recovers.
func TestPanicsLeaveNothingBehind(t *testing.T) {
	panics := func(t *testing.T, do func()) {
		t.Helper()
		defer func() {
			if v := recover(); v != "on purpose" {
				t.Errorf("panic %v, want the hook's to reach the caller", v)
			}
		}()
		do()
	}
	free := func(t *testing.T, l *Locker) {
		t.Helper()
		_, lease := acquire(t, l, within(t), t.Name())
		release(t, lease)
	}
	once := func() func(context.Context, Event) {
		var done sync.Once
		return func(context.Context, Event) { done.Do(func() { panic("on purpose") }) }
	}
	for name, patient := range map[string]func(t *testing.T) context.Context{
		"with a context that ends": func(t *testing.T) context.Context { return within(t) },
		"with one that does not":   func(*testing.T) context.Context { return context.Background() },
	} {
		t.Run("Acquired "+name, func(t *testing.T) {
			l, _ := newLocker(t, Options{Hooks: Hooks{Acquired: once()}})
			panics(t, func() { l.Acquire(patient(t), t.Name()) })
			free(t, l)
		})
		t.Run("Released "+name, func(t *testing.T) {
			l, _ := newLocker(t, Options{Hooks: Hooks{Released: once()}})
			_, lease := acquire(t, l, patient(t), t.Name())
			panics(t, func() { lease.Release() })
			free(t, l)
		})
		t.Run("the client's "+name, func(t *testing.T) {
			client, _ := newClient(t, shared.addr)
			r := &refuser{panic: true}
			client.AddHook(r)
			l := closing(t, New(client, Options{}))
			r.says("on purpose")
			panics(t, func() { l.Acquire(patient(t), t.Name()) })
			free(t, l)
			_, lease := acquire(t, l, patient(t), t.Name())
			r.says("on purpose")
			panics(t, func() { lease.Release() })
			free(t, l)
		})
	}
}

// TestForgottenLeasesEnd: nothing is released on the holder's behalf, and the lock ends with its
// lease.
func TestForgottenLeasesEnd(t *testing.T) {
	t.Parallel()
	const lease = 400 * time.Millisecond
	for name, o := range map[string]Options{"MaxHold": {Lease: lease, MaxHold: 2 * lease}, "Grace": {Lease: lease, Grace: 2 * lease, MaxHold: time.Hour}} {
		t.Run(name, func(t *testing.T) {
			client, _ := newClient(t, shared.addr)
			lost := make(chan Event, 1)
			o.Hooks.Lost = func(_ context.Context, e Event) { lost <- e }
			l, _ := newLocker(t, o)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			held, forgotten := acquire(t, l, ctx, t.Name())
			begun := time.Now()
			if name == "Grace" {
				cancel()
			}
			e := <-lost
			if after := time.Since(begun); after < 2*lease-lease/10 || after > 4*lease {
				t.Errorf("it ended after %s, want %s", after, 2*lease)
			}
			if e.Key != t.Name() || !errors.Is(e.Err, ErrLost) || !strings.Contains(e.Err.Error(), "Options."+name) || e.Token != forgotten.Token() {
				t.Errorf("the hook was told %+v", e)
			}
			if held.Err() == nil || forgotten.Valid() {
				t.Error("the hold goes on")
			}
			if name == "MaxHold" && !errors.Is(context.Cause(held), ErrLost) {
				t.Errorf("held ended with %v, want ErrLost", context.Cause(held))
			}
			if client.Exists(t.Context(), Keys("", t.Name()).Lock).Val() == 0 {
				t.Error("the lock was released while its holder may still work")
			}
			_, next := acquire(t, l, within(t), t.Name())
			release(t, next)
			if err := forgotten.Release(); !errors.Is(err, ErrNotHeld) {
				t.Errorf("Release = %v, want ErrNotHeld", err)
			}
		})
	}
}

// TestGraceOutlivesACommit: work that is finished after its context ended keeps the lock for as
// long.
func TestGraceOutlivesACommit(t *testing.T) {
	t.Parallel()
	const lease = 300 * time.Millisecond
	l, _ := newLocker(t, Options{Lease: lease, Grace: 10 * lease})
	other, _ := newLocker(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	_, mine := acquire(t, l, ctx, t.Name())
	cancel()
	time.Sleep(5 * lease)
	if _, _, err := other.TryAcquire(t.Context(), t.Name()); !errors.Is(err, ErrNotAcquired) || !mine.Valid() {
		t.Errorf("within its grace a hold is valid: %v; another process got %v", mine.Valid(), err)
	}
	release(t, mine)
}

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
			client := redis.NewClient(&redis.Options{Addr: w.addr, ContextTimeoutEnabled: true, ReadTimeout: time.Second, DialTimeout: time.Second, MaxRetries: -1})
			t.Cleanup(func() { client.Close() })
			l := New(client, Options{Lease: 10 * time.Second}) // Close waits for as long
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
			left := len(l.cleaner.attempts)
			l.mu.Unlock()
			if name == "refused" && left > 10 || left > calls { // a few were under way as the connections broke
				t.Errorf("%d attempts are to be cleaned up after %d calls", left, calls)
			}
			// Close does not wait for longer than it is told to.
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			begun := time.Now()
			if err := l.Close(ctx); left > 0 && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Close = %v, want the end of its context", err)
			}
			if took := time.Since(begun); took > 5*time.Second {
				t.Errorf("Close took %s", took)
			}
			w.mend()
			l.Close(t.Context())
		})
	}
}

// TestOutagesLeaveABoundedRest: what is to be ended in the background beyond so much is left to its
// lease, and each of these has its turn no longer than that.
func TestOutagesLeaveABoundedRest(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		f.answers(cancelScript, down)
		l.mu.Lock()
		for i := range uint64(2 * maxRemains) {
			l.cleanLocked(newLock("k"), i+1)
		}
		left, workers := len(l.cleaner.attempts), l.cleaner.workers
		l.unlock()
		if left != maxRemains || workers != maxCleaners {
			t.Errorf("%d attempts are remembered for %d workers, want %d and %d", left, workers, maxRemains, maxCleaners)
		}
		time.Sleep(2 * fakeLease)
		l.mu.Lock()
		defer l.unlock()
		if left, workers := len(l.cleaner.attempts), l.cleaner.workers; left != 0 || workers != 0 {
			t.Errorf("after two leases %d attempts are left, and %d workers", left, workers)
		}
	})
}

// TestNoRightToSubscribeIsSaid: and nobody goes on trying.
func TestNoRightToSubscribeIsSaid(t *testing.T) {
	t.Parallel()
	server, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.stop)
	admin, _ := newClient(t, server.addr)
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "service", "on", ">pw", "~*", "+@all", "resetchannels").Err(); err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: server.addr, Username: "service", Password: "pw"})
	t.Cleanup(func() { client.Close() })
	holder, _ := newLockerAt(t, server.addr, Options{})
	_, lease := acquire(t, holder, within(t), t.Name())
	l := closing(t, New(client, Options{}))
	begun := time.Now()
	_, _, err = l.Acquire(within(t), t.Name())
	if err == nil || !strings.Contains(err.Error(), "NOPERM") || errors.Is(err, ErrNotAcquired) {
		t.Errorf("Acquire = %v, want NOPERM", err)
	}
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("it took %s to say so", took)
	}
	connections := func() string { return admin.InfoMap(t.Context(), "stats").Item("Stats", "total_connections_received") }
	before := connections()
	time.Sleep(time.Second)
	if now := connections(); now != before {
		t.Errorf("connections go on being made: %s, %s", before, now)
	}
	release(t, lease)
	_, mine := acquire(t, l, within(t), t.Name()) // what need not wait can be had
	// A goroutine beside it could wait without Redis. It would not hear that other processes wait, too.
	for range 2 { // the second one at once: the subscription is not tried again
		if _, _, err := l.Acquire(within(t), t.Name()); err == nil || !strings.Contains(err.Error(), "NOPERM") {
			t.Errorf("Acquire beside a holder of this process = %v, want NOPERM", err)
		}
	}
	if !mine.Valid() {
		t.Error("the hold ended with the subscription")
	}
	release(t, mine)
}

func TestExtendWithAnEndedContextSaysSo(t *testing.T) {
	l, _ := newLocker(t, Options{FixedLease: true})
	_, lease := acquire(t, l, within(t), t.Name())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := lease.Extend(ctx); !errors.Is(err, context.Canceled) || errors.Is(err, ErrNotAcquired) || errors.Is(err, ErrNotHeld) {
		t.Errorf("Extend = %v, want that its context has ended", err)
	}
	release(t, lease)
}

func TestEvictionIsTold(t *testing.T) {
	server, err := startServer("--maxmemory-policy", "volatile-lru")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.stop)
	told := make(chan string, 3)
	l, _ := newLockerAt(t, server.addr, Options{Hooks: Hooks{Evicts: func(policy string) { told <- policy }}})
	for range 3 {
		_, lease := acquire(t, l, within(t), t.Name())
		release(t, lease)
	}
	if policy := <-told; policy != "volatile-lru" {
		t.Errorf("the policy is %q", policy)
	}
	safe, _ := newLocker(t, Options{Hooks: Hooks{Evicts: func(policy string) { told <- policy }}})
	_, lease := acquire(t, safe, within(t), t.Name())
	release(t, lease)
	time.Sleep(200 * time.Millisecond)
	if len(told) > 0 {
		t.Errorf("it was told again, or of %q", <-told)
	}
}
