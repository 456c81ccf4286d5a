package redislock

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestReentry enters a lock again, also under the held context of a second one, which is a child of the first one's.
func TestReentry(t *testing.T) {
	l, count := newLocker(t, Options{})
	other, _ := newLocker(t, Options{})
	outer, a := acquire(t, l, within(t), t.Name()+"a")
	inner, b := acquire(t, l, outer, t.Name()+"b")
	type key struct{}
	below := context.WithValue(inner, key{}, 1)
	before := count.n.Load()
	if again, twice := acquire(t, l, inner, t.Name()+"b"); again != inner || twice.Release() != nil {
		t.Error("re-entry made a new context")
	}
	for _, lease := range []*Lease{a, b} {
		_, again := acquire(t, l, below, lease.Key())
		if again.Token() != lease.Token() {
			t.Errorf("%s: token %d inside, %d outside, want the same", lease.Key(), again.Token(), lease.Token())
		}
		release(t, again)
		if err := again.Release(); !errors.Is(err, ErrNotHeld) || !lease.Valid() {
			t.Errorf("second Release of the inner lease = %v, want ErrNotHeld; the outer one is valid: %v", err, lease.Valid())
		}
	}
	if n := count.n.Load() - before; n != 0 {
		t.Errorf("re-entry sent %d requests, want none", n)
	}
	// Holds of one Locker are no holds of another one.
	if _, _, err := other.TryAcquire(below, t.Name()+"a"); !errors.Is(err, ErrNotAcquired) {
		t.Errorf("another Locker entered: %v", err)
	}
	release(t, b)
	if outer.Err() != nil || inner.Err() == nil {
		t.Errorf("after the inner release, outer ended: %v, inner ended: %v", outer.Err(), inner.Err())
	}
	if _, _, err := l.Acquire(below, t.Name()+"b"); !errors.Is(err, ErrNotAcquired) || !errors.Is(err, context.Canceled) {
		t.Errorf("a lock was acquired with a context that has ended: %v", err)
	}
	release(t, a)
}

func TestDoTellsWhatHappened(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, k Kind) {
		l := k.new(t, Options{})
		ours := errors.New("ours")
		if err := l.Do(within(t), t.Name(), func(context.Context) error { return ours }); !errors.Is(err, ours) {
			t.Errorf("Do = %v, want fn's error", err)
		}
		panics(t, func() { l.Do(within(t), t.Name(), func(context.Context) error { panic("on purpose") }) })
		_, lease, err := l.TryAcquire(t.Context(), t.Name())
		if err != nil {
			t.Fatalf("after a panic in fn the lock is not free: %v", err)
		}
		release(t, lease)

		l = k.new(t, Options{Lease: 4 * time.Second}) // the renewal that hears of the loss comes long before its end
		for want, returns := range map[error]func(held context.Context) error{
			nil: func(context.Context) error { return nil }, ours: func(context.Context) error { return ours }, ErrLost: context.Cause,
		} {
			err := l.Do(within(t), t.Name(), func(held context.Context) error {
				k.count(t, t.Name(), true) // somebody deletes it
				<-held.Done()
				return returns(held)
			})
			if !errors.Is(err, ErrLost) || !errors.Is(err, ErrTaken) || errors.Is(err, ours) != (want == ours) || strings.Count(err.Error(), ErrLost.Error()) != 1 {
				t.Errorf("fn returns %v; the lock is lost meanwhile: Do = %v", want, err)
			}
		}
	})
}

// TestTimesThatBoundNothing: the wait is no bound of the hold, and the longest times, added to now, are no time
// of the past.
func TestTimesThatBoundNothing(t *testing.T) {
	withFake(t, func(t *testing.T, _ *fakeRedis, l *Locker) {
		for _, o := range []AcquireOptions{{Wait: 100 * time.Millisecond}, {Wait: math.MaxInt64, MaxHold: math.MaxInt64}} {
			held, lease, err := l.AcquireWith(t.Context(), "k", o)
			must(t, err)
			if time.Sleep(3 * fakeLease); held.Err() != nil || !lease.Valid() {
				t.Errorf("%+v: the hold is over", o)
			}
			release(t, lease)
		}
	})
}

func TestRequests(t *testing.T) {
	t.Run("uncontended", func(t *testing.T) {
		l, count := newLocker(t, Options{})
		free(t, l) // loads the scripts
		before := count.n.Load()
		const rounds = 200
		for range rounds {
			free(t, l)
		}
		if n := count.n.Load() - before; n != 2*rounds {
			t.Errorf("%d holds sent %d requests, want 2 each", rounds, n)
		}
	})
	t.Run("inside a process", func(t *testing.T) {
		l, count := newLocker(t, Options{})
		listens(t, l) // who begins to listen asks once whether others wait
		_, lease := acquire(t, l, within(t), t.Name())
		const waiters = 100
		var all sync.WaitGroup
		for range waiters {
			all.Go(func() {
				free(t, l)
			})
		}
		eventually(t, "all wait", func() bool { return l.waitersOf(t.Name()) == waiters })
		before := count.n.Load()
		release(t, lease)
		all.Wait()
		if n := count.n.Load() - before; n != 1 { // the last one gives it back to Redis
			t.Errorf("%d hand-offs sent %d requests, want 1 at the end", waiters, n)
		}
	})
	for name, pause := range map[string]time.Duration{"between processes": 0, "between processes that do something else, too": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			const lockers, rounds = 8, 40
			var counts []*counter
			var all sync.WaitGroup
			for range lockers {
				l, count := newLocker(t, Options{Lease: time.Minute})
				counts = append(counts, count)
				all.Go(func() {
					for range rounds {
						_, lease := acquire(t, l, within(t), t.Name())
						time.Sleep(time.Millisecond)
						release(t, lease)
						time.Sleep(pause)
					}
				})
			}
			all.Wait()
			var n int64
			for _, c := range counts {
				n += c.n.Load()
			}
			if perHold := float64(n) / (lockers * rounds); perHold > 2.1 {
				t.Errorf("%d processes: %.2f requests a hold, want at most 2.1", lockers, perHold)
			}
		})
	}
}

func TestEveryKeyOfALockHasOneHashTag(t *testing.T) {
	for key, want := range map[string]string{
		"stock:42": "{stock:42}", "{tenant}:42": "{tenant}:42", "a{}b": "{a{}b}", "a}b": "{a}b}", "}b": "{redislock}:}b", "": "{redislock}:", "{a": "{{a}",
	} {
		for _, k := range Keys("", key).all() {
			if !strings.HasPrefix(k, want+":v2:") {
				t.Errorf("key %q of %q has another tag than %q", k, key, want)
			}
		}
	}
}
