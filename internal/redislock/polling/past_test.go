package polling

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"stocklock/internal/redislock"
)

// What only a change of the package can break, and no copy needs.

// TestAnOutageWithoutAnyAnswer is one for who asks, and for who waits for the turn.
func TestAnOutageWithoutAnyAnswer(t *testing.T) {
	withServers(t, 3, func(t *testing.T, f []*fakeServer, locker func(redislock.Options) *Locker) {
		const wait = lease / 10 // a try takes a fifth
		l := locker(redislock.Options{Wait: wait})
		for _, s := range f {
			s.set(func() { s.silent = true })
		}
		var all sync.WaitGroup
		for i := range 6 { // some end in one moment, and some have the turn at the end
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), wait*time.Duration(1+i%2)-1)
				defer cancel()
				if _, _, err := l.Acquire(ctx, "k"); !errors.Is(err, redislock.ErrUnavailable) || errors.Is(err, redislock.ErrNotAcquired) {
					t.Errorf("Acquire = %v, want that the servers do not answer", err)
				}
			})
			time.Sleep(wait / 2 * time.Duration(i%3/2))
		}
		all.Wait()
		time.Sleep(lease)
	})
}

// TestAnAnswerThatComesAfterTheWait is no outage: the lock is held, and each try takes most of a wait.
func TestAnAnswerThatComesAfterTheWait(t *testing.T) {
	withServers(t, 3, func(t *testing.T, f []*fakeServer, locker func(redislock.Options) *Locker) {
		_, held := acquire(t, locker(redislock.Options{}), t.Context())
		for _, s := range f {
			s.set(func() { s.before = func(string) { time.Sleep(400 * time.Millisecond) } })
		}
		const wait = 700 * time.Millisecond // the second try of who asks is cut
		l := locker(redislock.Options{Wait: wait})
		var all sync.WaitGroup
		for range 10 { // who comes while the next one asks, too
			all.Go(func() {
				begun := time.Now()
				if _, _, err := l.Acquire(t.Context(), "k"); !errors.Is(err, redislock.ErrNotAcquired) || errors.Is(err, redislock.ErrUnavailable) || time.Since(begun) != wait {
					t.Errorf("Acquire = %v after %s, want ErrNotAcquired after %s", err, time.Since(begun), wait)
				}
			})
			time.Sleep(wait / 3)
		}
		all.Wait()
		release(t, held)
		time.Sleep(lease)
	})
}

// TestTheLossOfAnOuterLock is all that is told to who waits for the turn.
func TestTheLossOfAnOuterLock(t *testing.T) {
	withServers(t, 3, func(t *testing.T, f []*fakeServer, locker func(redislock.Options) *Locker) {
		l := locker(redislock.Options{})
		_, other, err := locker(redislock.Options{}).Acquire(t.Context(), "other")
		if err != nil {
			t.Fatal(err)
		}
		outer, _ := acquire(t, l, t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for _, ctx := range []context.Context{ctx, outer} { // the first one asks
			all.Go(func() {
				_, _, err := l.Acquire(ctx, "other")
				if lost := ctx == outer; errors.Is(err, redislock.ErrLost) != lost || errors.Is(err, redislock.ErrNotAcquired) == lost {
					t.Errorf("under a lost lock %t: %v", lost, err)
				}
			})
			time.Sleep(time.Second)
		}
		for _, s := range f {
			s.set(func() { delete(s.values, "{k}") })
		}
		<-outer.Done()
		synctest.Wait()
		cancel()
		all.Wait()
		release(t, other)
	})
}

func TestOptionsThatCannotBe(t *testing.T) {
	for want, do := range map[string]func(){
		"without clients":       func() { NewQuorum([]*fakeServer{}, Options{}) },
		"Options.Retry is -1ns": func() { NewQuorum([]*fakeServer{{}}, Options{Retry: -1}) },
	} {
		func() {
			defer func() {
				if said, _ := recover().(string); !strings.Contains(said, want) {
					t.Errorf("panic %q, want one about %s", said, want)
				}
			}()
			do()
		}()
	}
}
