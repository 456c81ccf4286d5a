package redislock

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestOneHolderAtATimeAndTokensGrow has several processes' worth of goroutines
// fight for one lock, and some of them give up now and then.
func TestOneHolderAtATimeAndTokensGrow(t *testing.T) {
	const lockers, goroutines = 8, 4
	var inside, last, holds atomic.Int64
	var all sync.WaitGroup
	until := time.Now().Add(2 * time.Second)
	for range lockers {
		l, _ := newLocker(t, Options{Lease: 2 * time.Second})
		for range goroutines {
			all.Go(func() {
				for time.Now().Before(until) {
					ctx, cancel := context.WithCancel(t.Context())
					if rand.IntN(10) == 0 {
						time.AfterFunc(time.Duration(rand.IntN(5000))*time.Microsecond, cancel)
					}
					_, lease, err := l.Acquire(ctx, t.Name())
					if err != nil {
						cancel()
						if !errors.Is(err, ErrNotAcquired) {
							t.Errorf("Acquire: %v", err)
						}
						continue
					}
					if n := inside.Add(1); n != 1 {
						t.Errorf("%d holders at once", n)
					}
					if before := last.Swap(lease.Token()); lease.Token() <= before {
						t.Errorf("token %d after %d", lease.Token(), before)
					}
					holds.Add(1)
					inside.Add(-1)
					release(t, lease)
					cancel()
				}
			})
		}
	}
	all.Wait()
	if holds.Load() < 100 {
		t.Errorf("only %d holds in two seconds", holds.Load())
	}
}

func TestReentry(t *testing.T) {
	l, count := newLocker(t, Options{})
	other, _ := newLocker(t, Options{})
	held, outer := acquire(t, l, within(t), t.Name())
	before := count.n.Load()
	again, inner := acquire(t, l, held, t.Name())
	if again != held {
		t.Error("re-entry made a new context")
	}
	if inner.Token() != outer.Token() {
		t.Errorf("token %d inside, %d outside, want the same", inner.Token(), outer.Token())
	}
	release(t, inner)
	if n := count.n.Load() - before; n != 0 {
		t.Errorf("re-entry sent %d requests, want none", n)
	}
	if _, _, err := other.TryAcquire(t.Context(), t.Name()); !errors.Is(err, ErrNotAcquired) {
		t.Errorf("after the inner release, another got %v, want ErrNotAcquired", err)
	}
	if err := inner.Release(); !errors.Is(err, ErrNotHeld) {
		t.Errorf("second Release of the inner lease = %v, want ErrNotHeld", err)
	}
	if !outer.Valid() {
		t.Error("the outer lease is not valid after the inner was released twice")
	}
	release(t, outer)
	if _, _, err := l.Acquire(held, t.Name()); err == nil {
		t.Error("a hold that is over was entered again")
	}
}

func TestDoTellsWhatHappened(t *testing.T) {
	contract(t, func(t *testing.T, k Kind) {
		l := k.new(t, Options{})
		ours := errors.New("ours")
		if err := l.Do(within(t), t.Name(), func(context.Context) error { return ours }); !errors.Is(err, ours) {
			t.Errorf("Do = %v, want fn's error", err)
		}
		func() {
			defer func() { recover() }()
			l.Do(within(t), t.Name(), func(context.Context) error { panic("on purpose") })
		}()
		_, lease, err := l.TryAcquire(t.Context(), t.Name())
		if err != nil {
			t.Fatalf("after a panic in fn the lock is not free: %v", err)
		}
		release(t, lease)

		l = k.new(t, Options{Lease: 300 * time.Millisecond})
		for _, fails := range []bool{false, true} {
			err := l.Do(within(t), t.Name(), func(held context.Context) error {
				k.count(t, t.Name(), true) // somebody deletes it
				<-held.Done()
				if fails {
					return ours
				}
				return nil
			})
			if !errors.Is(err, ErrLost) || !errors.Is(err, ErrTaken) || errors.Is(err, ours) != fails {
				t.Errorf("fn fails: %v; the lock is lost meanwhile: Do = %v", fails, err)
			}
		}
		err = l.Do(within(t), t.Name(), func(held context.Context) error {
			k.count(t, t.Name(), true)
			<-held.Done()
			return context.Cause(held)
		})
		if !errors.Is(err, ErrLost) || strings.Count(err.Error(), ErrLost.Error()) != 1 {
			t.Errorf("fn returns the loss: Do = %v", err)
		}
	})
}

func TestWaitDoesNotBoundTheHold(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, _ *Locker) {
		l := New(f, Options{Wait: 100 * time.Millisecond})
		held, lease := acquire(t, l, t.Context(), t.Name())
		time.Sleep(200 * time.Millisecond)
		if held.Err() != nil {
			t.Error("the hold ended with the time to wait")
		}
		release(t, lease)
		l.Close(t.Context())
	})
}

// TestTheLongestTimesHaveNoEnd: added to now, they are no time of the past.
func TestTheLongestTimesHaveNoEnd(t *testing.T) {
	withFake(t, func(t *testing.T, _ *fakeRedis, l *Locker) {
		_, lease, err := l.AcquireWith(t.Context(), "k", AcquireOptions{Wait: math.MaxInt64, MaxHold: math.MaxInt64})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * fakeLease)
		if !lease.Valid() {
			t.Error("the hold is over")
		}
		release(t, lease)
	})
}

func TestWaitBoundsTheWait(t *testing.T) {
	contract(t, func(t *testing.T, k Kind) {
		l := k.new(t, Options{Wait: 100 * time.Millisecond})
		other := k.new(t, Options{})
		_, lease := acquire(t, other, t.Context(), t.Name())
		begun := time.Now()
		_, _, err := l.Acquire(t.Context(), t.Name())
		if !errors.Is(err, ErrNotAcquired) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Acquire of a taken lock = %v, want ErrNotAcquired alone", err)
		}
		if waited := time.Since(begun); waited < 90*time.Millisecond {
			t.Errorf("waited %s, want 100ms", waited)
		}
		release(t, lease)
	})
}

func TestCancelledWaiterSaysBothCauses(t *testing.T) {
	l, _ := newLocker(t, Options{})
	_, lease := acquire(t, l, within(t), t.Name())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, _, err := l.Acquire(ctx, t.Name())
	if !errors.Is(err, ErrNotAcquired) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Acquire = %v, want ErrNotAcquired and the deadline", err)
	}
	client, _ := newClient(t, shared.addr)
	eventually(t, "its place is given up", func() bool { return client.ZCard(t.Context(), Keys("", t.Name()).Queue).Val() == 0 })
	release(t, lease)
}

// TestFirstComeFirstServed queues processes one after another and wants them
// served in that order.
func TestFirstComeFirstServed(t *testing.T) {
	first, _ := newLocker(t, Options{})
	_, lease := acquire(t, first, within(t), t.Name())
	const waiters = 5
	order := make(chan int, waiters)
	var all sync.WaitGroup
	client, _ := newClient(t, shared.addr)
	for i := range waiters {
		l, _ := newLocker(t, Options{})
		all.Go(func() {
			_, lease := acquire(t, l, within(t), t.Name())
			order <- i
			release(t, lease)
		})
		for client.ZCard(t.Context(), Keys("", t.Name()).Queue).Val() != int64(i+1) {
			time.Sleep(time.Millisecond)
		}
	}
	if _, _, err := first.TryAcquire(t.Context(), t.Name()); !errors.Is(err, ErrNotAcquired) {
		t.Errorf("TryAcquire past a queue = %v, want ErrNotAcquired", err)
	}
	release(t, lease)
	all.Wait()
	for want := range waiters {
		if got := <-order; got != want {
			t.Errorf("served %d, want %d", got, want)
		}
	}
}

func TestFreeLockIsNotTakenPastAQueue(t *testing.T) {
	ctx, n := within(t), lockOn(t.Name())
	client, _ := newClient(t, shared.addr)
	client.Del(ctx, keysOf(n.name).all()...)
	holder, waiter := newPeer(client, time.Minute), newPeer(client, time.Minute)
	subscription := client.Subscribe(ctx, waiter.channel()) // alive, but slow
	defer subscription.Close()
	if _, err := subscription.Receive(ctx); err != nil {
		t.Fatal(err)
	}
	if r, err := holder.acquire(ctx, n, 1, true, 0); err != nil || r.kind != replyHeld {
		t.Fatalf("acquire = %+v, %v", r, err)
	}
	if r, err := waiter.acquire(ctx, n, 1, true, 0); err != nil || r.kind != replyWaiting {
		t.Fatalf("acquire of a held lock = %+v, %v, want to wait", r, err)
	}
	client.Del(ctx, keysOf(n.name).Lock) // the holder's lease is over
	barger, _ := newLocker(t, Options{})
	if _, lease, err := barger.TryAcquire(ctx, n.name); !errors.Is(err, ErrNotAcquired) {
		t.Errorf("a newcomer got %v before the one that waited, %v", lease, err)
	}
	if owner := holderIn(t, client, keysOf(n.name).Lock).owner; owner != waiter.id {
		t.Errorf("the lock is with %q, want the waiter %q", owner, waiter.id)
	}
}

func TestRequests(t *testing.T) {
	t.Run("uncontended", func(t *testing.T) {
		l, count := newLocker(t, Options{})
		_, lease := acquire(t, l, within(t), t.Name()) // loads the scripts
		release(t, lease)
		before := count.n.Load()
		const rounds = 50
		for range rounds {
			_, lease := acquire(t, l, within(t), t.Name())
			release(t, lease)
		}
		if n := count.n.Load() - before; n != 2*rounds {
			t.Errorf("%d holds sent %d requests, want 2 each", rounds, n)
		}
	})
	t.Run("after a cancelled wait", func(t *testing.T) {
		l, count := newLocker(t, Options{})
		other, _ := newLocker(t, Options{})
		_, theirs := acquire(t, other, within(t), t.Name())
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		if _, _, err := l.Acquire(ctx, t.Name()); err == nil {
			t.Fatal("got a lock that another one holds")
		}
		release(t, theirs)
		before := count.n.Load()
		const rounds = 200
		for range rounds {
			_, lease := acquire(t, l, within(t), t.Name())
			release(t, lease)
		}
		if n := count.n.Load() - before; n > 2.2*rounds { // what was cancelled may still arrive, for all that a short script knows
			t.Errorf("%d holds sent %d requests, want little more than 2 each", rounds, n)
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
				_, lease := acquire(t, l, within(t), t.Name())
				release(t, lease)
			})
		}
		queued := func() int {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.locks[tagged(t.Name())].waiters.Len()
		}
		for queued() < waiters {
			time.Sleep(time.Millisecond)
		}
		before := count.n.Load()
		release(t, lease)
		all.Wait()
		// The last one gives it back to Redis.
		if n := count.n.Load() - before; n != 1 {
			t.Errorf("%d hand-offs sent %d requests, want 1 at the end", waiters, n)
		}
	})
	betweenProcesses := func(t *testing.T, pause time.Duration) {
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
		perHold := float64(n) / (lockers * rounds)
		t.Logf("%d processes, one goroutine each: %.2f requests a hold", lockers, perHold)
		if perHold > 2.1 {
			t.Errorf("%.2f requests a hold, want at most 2.1", perHold)
		}
	}
	t.Run("between processes", func(t *testing.T) { betweenProcesses(t, 0) })
	t.Run("between processes that do something else, too", func(t *testing.T) { betweenProcesses(t, time.Millisecond) })
}

// TestRequestsOfRenewals counts them for locks that are held for long.
func TestRequestsOfRenewals(t *testing.T) {
	const locks = 1000
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		for i := range locks {
			_, lease := acquire(t, l, t.Context(), fmt.Sprint(i))
			defer release(t, lease)
		}
		time.Sleep(fakeLease / 2) // until renewals go together
		before := len(f.requests(renewScript))
		time.Sleep(fakeLease)
		n := len(f.requests(renewScript)) - before
		if n < 3*locks || n > 4*locks*11/10 { // at a third, or up to a quarter of that earlier
			t.Errorf("%d locks were renewed %d times in a lease, want three to four times each", locks, n)
		}
	})
}

func TestCloseLeavesNothing(t *testing.T) {
	client, _ := newClient(t, shared.addr)
	l := New(client, Options{})
	other, _ := newLocker(t, Options{})
	held, _ := acquire(t, l, within(t), t.Name())
	_, blocking := acquire(t, other, within(t), t.Name()+"b")
	ended := make(chan error, 1)
	go func() {
		_, _, err := l.Acquire(within(t), t.Name()+"b")
		ended <- err
	}()
	for client.ZCard(t.Context(), Keys("", t.Name()+"b").Queue).Val() == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := l.Close(context.Background()); err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := <-ended; !errors.Is(err, ErrClosed) {
		t.Errorf("the wait ended with %v, want ErrClosed", err)
	}
	if cause := context.Cause(held); !errors.Is(cause, ErrLost) {
		t.Errorf("the held context ended with %v, want ErrLost", cause)
	}
	if _, _, err := l.Acquire(t.Context(), "x"); !errors.Is(err, ErrClosed) {
		t.Errorf("Acquire after Close = %v, want ErrClosed", err)
	}
	if n := client.Exists(t.Context(), Keys("", t.Name()).Lock).Val(); n != 0 {
		t.Error("Close left its lock")
	}
	if n := client.ZCard(t.Context(), Keys("", t.Name()+"b").Queue).Val(); n != 0 {
		t.Error("Close left its place in a queue")
	}
	for _, channel := range client.PubSubChannels(t.Context(), "redislock:"+l.server.id).Val() {
		t.Errorf("Close left the subscription %s", channel)
	}
	release(t, blocking)
}

func TestEveryKeyOfALockHasOneHashTag(t *testing.T) {
	for key, want := range map[string]string{"stock:42": "{stock:42}:v2:lock", "{tenant}:42": "{tenant}:42:v2:lock", "a{}b": "{a{}b}:v2:lock", "a}b": "{a}b}:v2:lock", "}b": "{redislock}:}b:v2:lock", "": "{redislock}::v2:lock", ":": "{:}:v2:lock"} {
		keys := Keys("", key)
		if keys.Lock != want {
			t.Errorf("the lock of %q is %q, want %q", key, keys.Lock, want)
		}
		for _, k := range keys.all() {
			if !strings.HasPrefix(k, strings.TrimSuffix(keys.Lock, "lock")) {
				t.Errorf("key %q of %q has another tag than %q", k, key, keys.Lock)
			}
		}
	}
}

// TestBusyProcessLetsAnotherIn has goroutines of one process pass the lock on
// without a pause. It must hear of another process that waits at once, not at its renewal.
func TestBusyProcessLetsAnotherIn(t *testing.T) {
	const lease = time.Minute // a renewal is far away
	busy, _ := newLocker(t, Options{Lease: lease})
	ctx, stop := context.WithCancel(within(t))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				if _, lease, err := busy.Acquire(ctx, t.Name()); err == nil {
					time.Sleep(15 * time.Millisecond) // so that 2,047 passes, after which Redis is asked anyway, take half a minute
					lease.Release()
				}
			}
		})
	}
	time.Sleep(200 * time.Millisecond)
	other, _ := newLocker(t, Options{Lease: lease})
	begun := time.Now()
	_, theirs := acquire(t, other, within(t), t.Name())
	if waited := time.Since(begun); waited > 10*time.Second {
		t.Errorf("another process waited %s, want a moment", waited)
	}
	release(t, theirs)
	stop()
	all.Wait()
}

// TestMarksOfCancelledAttemptsDoNotPileUp has many Lockers cancel what was never answered. Who waits
// meanwhile keeps its place.
func TestMarksOfCancelledAttemptsDoNotPileUp(t *testing.T) {
	client, _ := newClient(t, shared.addr)
	holder, waiter := newScripted(t), newScripted(t)
	holder.acquires(1, true, replyHeld)
	waiter.acquires(1, true, replyWaiting)
	n := holder.n
	for range 500 {
		s := newPeer(client, time.Second)
		if err := s.cancel(t.Context(), n, 1); err != nil {
			t.Fatal(err)
		}
	}
	if left := client.HLen(t.Context(), keysOf(n.name).Waiters).Val(); left > 102 {
		t.Errorf("%d marks are kept, want about a hundred at most", left)
	}
	holder.releases(1, 0, replyWaiting)
	waiter.owns("1")
	waiter.isTold("1")
}
