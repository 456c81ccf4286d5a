package redislock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestPanicsLeaveNothingBehind: in a hook, ours or the client's, while the caller recovers.
func TestPanicsLeaveNothingBehind(t *testing.T) {
	contract(t, func(t *testing.T, k Kind) {
		panics := func(t *testing.T, do func()) {
			t.Helper()
			defer func() {
				if v := recover(); v != "on purpose" {
					t.Errorf("panic %v, want the hook's to reach the caller", v)
				}
			}()
			do()
		}
		free := func(t *testing.T, l Locking) {
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
				l := k.new(t, Options{Hooks: Hooks{Acquired: once()}})
				panics(t, func() { l.Acquire(patient(t), t.Name()) })
				free(t, l)
			})
			t.Run("Waiting "+name, func(t *testing.T) {
				l := k.new(t, Options{Hooks: Hooks{Waiting: once()}})
				_, lease := acquire(t, l, patient(t), t.Name())
				panics(t, func() { l.Acquire(patient(t), t.Name()) })
				release(t, lease)
				free(t, l)
			})
			t.Run("Released "+name, func(t *testing.T) {
				l := k.new(t, Options{Hooks: Hooks{Released: once()}})
				_, lease := acquire(t, l, patient(t), t.Name())
				panics(t, func() { lease.Release() })
				free(t, l)
			})
			t.Run("the client's "+name, func(t *testing.T) {
				var hooks []*refuser // one for each server: a majority without a panic decides
				l := k.with(t, Options{}, func(c *redis.Client) {
					hooks = append(hooks, &refuser{panic: true})
					c.AddHook(hooks[len(hooks)-1])
				})
				panicOnce := func(do func()) {
					for _, r := range hooks {
						r.says("on purpose")
					}
					panics(t, do)
					eventually(t, "each client's hook panicked", func() bool {
						return !slices.ContainsFunc(hooks, func(r *refuser) bool { return r.error.Load() != nil })
					})
				}
				panicOnce(func() { l.Acquire(patient(t), t.Name()) })
				free(t, l)
				_, lease := acquire(t, l, patient(t), t.Name())
				panicOnce(func() { lease.Release() })
				free(t, l)
			})
		}
	})
}

// TestWaitingIsCalledOnce: for each Acquire that finds the lock taken, in its own process or in
// another, before it has the lock.
func TestWaitingIsCalledOnce(t *testing.T) {
	contract(t, func(t *testing.T, k Kind) {
		type caller struct{}
		var mu sync.Mutex
		var calls []string
		note := func(what string) func(context.Context, Event) {
			return func(ctx context.Context, e Event) {
				mu.Lock()
				defer mu.Unlock()
				calls = append(calls, fmt.Sprint(what, " ", ctx.Value(caller{}), " ", e.Key == t.Name()))
			}
		}
		o := Options{Hooks: Hooks{Waiting: note("waits"), Acquired: note("has it")}}
		one := k.new(t, o)
		two := k.new(t, o)
		seen := func(n int) bool {
			mu.Lock()
			defer mu.Unlock()
			return len(calls) == n
		}
		as := func(name string) context.Context { return context.WithValue(within(t), caller{}, name) }
		_, lease := acquire(t, one, as("a"), t.Name())
		var others sync.WaitGroup
		for i, of := range []Locking{one, two, one} {
			others.Go(func() {
				_, lease := acquire(t, of, as(string("bcd"[i])), t.Name())
				release(t, lease)
			})
			for n := 2 + i; !seen(n); time.Sleep(time.Millisecond) {
				if within := t.Context(); within.Err() != nil {
					t.Fatal(within.Err())
				}
			}
		}
		if _, _, err := one.TryAcquire(as("e"), t.Name()); !errors.Is(err, ErrNotAcquired) {
			t.Errorf("TryAcquire: %v", err)
		}
		release(t, lease)
		others.Wait()
		want := "has it a true, waits b true, waits c true, waits d true, has it"
		if got := strings.Join(calls, ", "); !strings.HasPrefix(got, want) || len(calls) != 7 {
			t.Errorf("calls: %s, want %s ... of b, c and d", got, want)
		}
	})
}

// TestNobodyWaitsForASilentRedis: a caller whose request has no answer does not know that the lock is
// taken, nor do the callers behind it.
func TestNobodyWaitsForASilentRedis(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		l.opts.Hooks.Waiting = func(context.Context, Event) { t.Error("called") }
		l.subscription = &subscription{close: func() {}, since: l.now() + time.Hour}
		f.answers(acquireScript, noAnswer)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var callers sync.WaitGroup
		for range 2 {
			callers.Go(func() {
				if _, _, err := l.Acquire(ctx, "k"); err == nil {
					t.Error("acquired")
				}
			})
		}
		callers.Wait()
	})
}

// TestAPanicInLostKeepsNoHookFromItsCall: the hook is called for all holds that end together.
func TestAPanicInLostKeepsNoHookFromItsCall(t *testing.T) {
	contract(t, func(t *testing.T, k Kind) {
		called := 0
		l := k.new(t, Options{Hooks: Hooks{Lost: func(context.Context, Event) {
			called++
			panic("on purpose")
		}}})
		const holds = 5
		for i := range holds {
			acquire(t, l, within(t), fmt.Sprint(t.Name(), i))
		}
		func() {
			defer func() {
				if v := recover(); v != "on purpose" {
					t.Errorf("panic %v, want the hook's to reach the caller of Close", v)
				}
			}()
			l.Close(within(t))
		}()
		if called != holds {
			t.Errorf("%d of %d hooks were called", called, holds)
		}
		if err := l.Close(within(t)); err != nil {
			t.Errorf("Close, again: %v", err)
		}
	})
}

// TestForgottenLeasesEnd: nothing is released on the holder's behalf, and the lock ends with its
// lease.
func TestForgottenLeasesEnd(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, k Kind) {
		const lease = time.Second
		for name, o := range map[string]Options{"MaxHold": {Lease: lease, MaxHold: 2 * lease}, "Grace": {Lease: lease, Grace: 2 * lease, MaxHold: time.Hour}} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				lost := make(chan Event, 1)
				o.Hooks.Lost = func(_ context.Context, e Event) { lost <- e }
				l := k.new(t, o)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				held, forgotten := acquire(t, l, ctx, t.Name())
				begun := time.Now()
				if name == "Grace" {
					cancel()
				}
				e := <-lost
				if after := time.Since(begun); after < 2*lease-lease/10 {
					t.Errorf("it ended after %s, want %s", after, 2*lease)
				}
				if e.Key != t.Name() || !errors.Is(e.Err, ErrLost) || !strings.Contains(e.Err.Error(), "Options."+name) || e.Token != forgotten.Token() {
					t.Errorf("the hook was called with %+v", e)
				}
				if held.Err() == nil || forgotten.Valid() {
					t.Error("the hold goes on")
				}
				if name == "MaxHold" && !errors.Is(context.Cause(held), ErrLost) {
					t.Errorf("held ended with %v, want ErrLost", context.Cause(held))
				}
				if k.count(t, t.Name(), false) == 0 {
					t.Error("the lock was released while its holder may still work")
				}
				_, next := acquire(t, l, within(t), t.Name())
				release(t, next)
				if err := forgotten.Release(); !errors.Is(err, ErrNotHeld) {
					t.Errorf("Release = %v, want ErrNotHeld", err)
				}
			})
		}
	})
}

// TestGraceOutlivesACommit: work that is finished after its context ended keeps the lock for as
// long.
func TestGraceOutlivesACommit(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, k Kind) {
		const lease = 6 * time.Second
		l := k.new(t, Options{Lease: lease, Grace: 10 * lease})
		other := k.new(t, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		_, mine := acquire(t, l, ctx, t.Name())
		cancel()
		isRenewed(t, mine)
		if _, _, err := other.TryAcquire(t.Context(), t.Name()); !errors.Is(err, ErrNotAcquired) || !mine.Valid() {
			t.Errorf("within its grace a hold is valid: %v; another process got %v", mine.Valid(), err)
		}
		release(t, mine)
	})
}
