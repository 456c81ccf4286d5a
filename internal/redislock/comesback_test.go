package redislock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestWhoComesBackAtOnceFindsTheLockHere has two processes with one goroutine each want a lock again and again.
func TestWhoComesBackAtOnceFindsTheLockHere(t *testing.T) {
	var local atomic.Int64
	var requests []*counter
	var all sync.WaitGroup
	ctx := within(t)
	const holds = 300
	for range 2 {
		l, count := newLocker(t, Options{Hooks: Hooks{Acquired: func(_ string, _ time.Duration, how Handoff) {
			if how == Local {
				local.Add(1)
			}
		}}})
		requests = append(requests, count)
		all.Go(func() {
			for range holds {
				_, lease, err := l.Acquire(ctx, t.Name())
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Millisecond)
				lease.Release()
			}
		})
	}
	all.Wait()
	sent := requests[0].n.Load() + requests[1].n.Load()
	if local.Load() < holds/2 || sent > 3*holds {
		t.Errorf("%d of %d holds came from the holder before, with %d requests; want most, with less than one request each", local.Load(), 2*holds, sent)
	}
}

// TestWhatIsKeptForAMomentIsGivenBack: nobody comes back for it, or the Locker is closed meanwhile.
func TestWhatIsKeptForAMomentIsGivenBack(t *testing.T) {
	other, _ := newLocker(t, Options{})
	for name, then := range map[string]func(*Locker) error{
		"nobody comes": func(*Locker) error { return nil },
		"closed":       (*Locker).Close,
	} {
		l, _ := newLocker(t, Options{Lease: time.Minute})
		key := t.Name() + name
		_, lease := acquire(t, l, within(t), key)
		l.mu.Lock()
		n := l.names[key]
		n.hold.end(nil)
		l.linger(n)
		l.mu.Unlock()
		if err := then(l); err != nil {
			t.Error(err)
		}
		eventually(t, name+": the lock is free", func() bool {
			_, theirs, err := other.TryAcquire(t.Context(), key)
			if err == nil {
				release(t, theirs)
			}
			return err == nil
		})
		if err := lease.Release(); !errors.Is(err, ErrNotHeld) {
			t.Errorf("%s: a second release = %v, want ErrNotHeld", name, err)
		}
	}
}

// kept has a Locker keep a lock for a moment that does not end.
func kept(t *testing.T) (*Locker, *name) {
	t.Helper()
	l, _ := newLocker(t, Options{Lease: time.Minute})
	acquire(t, l, within(t), t.Name())
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.names[t.Name()]
	n.hold.end(nil)
	n.state = lingering
	t.Cleanup(func() {
		client, _ := newClient(t, shared.addr)
		client.Del(context.Background(), n.keys...) // for another run of the same test
	})
	return l, n
}

// TestWhatIsKeptForAMomentIsThereToBeTried: nobody holds it, and another process may have given up meanwhile.
func TestWhatIsKeptForAMomentIsThereToBeTried(t *testing.T) {
	l, n := kept(t)
	_, lease, err := l.TryAcquire(t.Context(), n.key)
	if err != nil {
		t.Fatal(err)
	}
	release(t, lease)
}

// TestGrantToldAgainIsNoNewHold: its token would not be larger than those of the hand-offs since.
func TestGrantToldAgainIsNoNewHold(t *testing.T) {
	l, n := kept(t)
	n.grant.n = 3
	l.read(fmt.Sprintf("granted %d %d 0 %s", n.attempt, n.grant.epoch, n.key))
	if n.state != lingering || n.grant.n != 3 {
		t.Errorf("state %d after %d hand-offs, want %d after 3", n.state, n.grant.n, lingering)
	}
}

// TestWhatIsKeptForAMomentCanBeLost: whoever comes back for a lock that Redis has given away asks for it.
func TestWhatIsKeptForAMomentCanBeLost(t *testing.T) {
	l, n := kept(t)
	l.beaten(beat{n, n.attempt, true}, time.Now(), reply{kind: replyDropped})
	l.mu.Lock()
	defer l.mu.Unlock()
	if n.state != idle {
		t.Errorf("after Redis has said that it is not held, the lock is in state %d, want %d", n.state, idle)
	}
}

// TestTurnsAreShorterWhereManyWait is about how long a process may keep a lock among its own goroutines.
func TestTurnsAreShorterWhereManyWait(t *testing.T) {
	l := &Locker{opts: Options{}.withDefaults()}
	for _, c := range []struct {
		others, passes int64
		since          time.Duration
		may            bool
	}{
		{0, 1000, time.Second, true},
		{1, maxPasses - 1, 20 * time.Millisecond, true},
		{1, maxPasses, 20 * time.Millisecond, false},
		{1, maxPasses - 1, maxPassing, false},
		{1, 0, longHold, false},
		{1, 1, longHold, true},
		{manyOthers, maxPasses - 1, 20 * time.Millisecond, true},
		{4 * manyOthers, maxPasses/4 - 1, 10 * time.Millisecond, true},
		{4 * manyOthers, maxPasses / 4, 10 * time.Millisecond, false},
		{4 * manyOthers, maxPasses/4 - 1, maxPassing / 4, false},
	} {
		now := time.Now()
		n := &name{grant: grant{n: c.passes, others: c.others, given: now.Add(-c.since), deadline: now.Add(time.Minute)}}
		if l.mayPass(n) != c.may {
			t.Errorf("%d others, after %d passes and %s: may pass = %v, want %v", c.others, c.passes, c.since, !c.may, c.may)
		}
	}
}
