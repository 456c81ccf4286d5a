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

// panics wants the panic of a hook, or of fn, to reach the caller.
func panics(t *testing.T, do func()) {
	t.Helper()
	if v := panicOf(do); v != "on purpose" {
		t.Errorf("panic %v, want the hook's to reach the caller", v)
	}
}

func panicOf(do func()) (v any) {
	defer func() { v = recover() }()
	do()
	return nil
}

// TestPanicsLeaveNothingBehind: in a hook, ours or the client's, while the caller recovers.
func TestPanicsLeaveNothingBehind(t *testing.T) {
	contract(t, func(t *testing.T, k Kind) {
		once := func() func(context.Context, Event) {
			var done sync.Once
			return func(context.Context, Event) { done.Do(func() { panic("on purpose") }) }
		}
		for name, patient := range map[string]func(t *testing.T) context.Context{
			"with a context that ends": func(t *testing.T) context.Context { return within(t) }, "with one that does not": func(*testing.T) context.Context { return context.Background() },
		} {
			t.Run(name, func(t *testing.T) {
				l := k.new(t, Options{Hooks: Hooks{Acquired: once()}})
				panics(t, func() { l.Acquire(patient(t), t.Name()) })
				free(t, l)

				l = k.new(t, Options{Hooks: Hooks{Waiting: once(), Released: once()}})
				_, lease := acquire(t, l, patient(t), t.Name())
				panics(t, func() { l.Acquire(patient(t), t.Name()) })
				panics(t, func() { lease.Release() })
				free(t, l)

				var hooks []*panicker // one for each server: a majority without a panic decides
				l = k.with(t, Options{}, func(c *redis.Client) {
					hooks = append(hooks, &panicker{})
					c.AddHook(sees(hooks[len(hooks)-1].see))
				})
				panicOnce := func(do func()) {
					for _, r := range hooks {
						r.says("on purpose")
					}
					panics(t, do)
					eventually(t, "each client's hook panicked", func() bool {
						return !slices.ContainsFunc(hooks, func(r *panicker) bool { return r.text.Load() != nil })
					})
				}
				panicOnce(func() { l.Acquire(patient(t), t.Name()) })
				free(t, l)
				_, lease = acquire(t, l, patient(t), t.Name())
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
		calls := make(chan string, 20)
		note := func(what string) func(context.Context, Event) {
			return func(ctx context.Context, e Event) {
				calls <- fmt.Sprint(what, " ", ctx.Value(caller{}), " ", e.Key == t.Name())
			}
		}
		o := Options{Hooks: Hooks{Waiting: note("waits"), Acquired: note("has it")}}
		one, two := k.new(t, o), k.new(t, o)
		as := func(name string) context.Context { return context.WithValue(within(t), caller{}, name) }
		_, lease := acquire(t, one, as("a"), t.Name())
		said := []string{<-calls}
		var others sync.WaitGroup
		for i, of := range []Locking{one, two, one} {
			got := asks(t, as(string("bcd"[i])), of, t.Name())
			others.Go(func() { release(t, <-got) })
			said = append(said, <-calls)
		}
		if _, _, err := one.TryAcquire(as("e"), t.Name()); !errors.Is(err, ErrNotAcquired) {
			t.Errorf("TryAcquire: %v", err)
		}
		release(t, lease)
		others.Wait()
		want := "has it a true, waits b true, waits c true, waits d true"
		if got := strings.Join(said, ", "); got != want || len(calls) != 3 {
			t.Errorf("calls: %s and %d more, want %s, and that b, c and d have it", got, len(calls), want)
		}
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
		panics(t, func() { l.Close(over()) })
		if called != holds {
			t.Errorf("%d of %d hooks were called", called, holds)
		}
		if err := l.Close(within(t)); err != nil {
			t.Errorf("Close, again: %v", err)
		}
	})
}

// TestForgottenLeasesEnd: nothing is released on the holder's behalf, and the lock ends with its lease. Work that
// is finished after its context ended keeps the lock for its grace.
func TestForgottenLeasesEnd(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, k Kind) {
		const lease = 4 * time.Second
		for name, o := range map[string]Options{"MaxHold": {Lease: lease, MaxHold: lease / 4}, "Grace": {Lease: lease, Grace: lease * 3 / 2, MaxHold: time.Hour}} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				lost := make(chan Event, 1)
				o.Hooks.Lost = func(_ context.Context, e Event) { lost <- e }
				l := k.new(t, o)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				begun := time.Now()
				held, forgotten := acquire(t, l, ctx, t.Name())
				if name == "Grace" {
					begun = time.Now()
					cancel()
				}
				e := <-lost
				if after := time.Since(begun); after < min(o.MaxHold, lease*3/2) || e.Key != t.Name() || !errors.Is(e.Err, ErrHeldTooLong) || e.Token != forgotten.Token() {
					t.Errorf("after %s the hook was called with %+v", after, e)
				}
				if held.Err() == nil || forgotten.Valid() || name == "MaxHold" && !errors.Is(context.Cause(held), ErrLost) {
					t.Errorf("the hold is valid: %v; its context has %v", forgotten.Valid(), context.Cause(held))
				}
				if k.count(t, t.Name(), false) == 0 {
					t.Error("the lock was released while its holder may still work")
				}
				free(t, l)
				if err := forgotten.Release(); !errors.Is(err, ErrNotHeld) {
					t.Errorf("Release = %v, want ErrNotHeld", err)
				}
			})
		}
	})
}
