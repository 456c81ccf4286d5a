package redislock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// What remains of the rules in docs/lock-protocol.md: each has a test by name.

// withWaiter has a Locker wait in Redis's queue, in fake time. Got takes what it waits for; told
// is a message to the Locker.
func withWaiter(t *testing.T, test func(t *testing.T, f *fakeRedis, got <-chan *Lease, tell func(message string, args ...any))) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		// It is never opened anew: that is for one that has been there for a while.
		l.subscription = &subscription{close: func() {}, since: l.now() + time.Hour}
		f.answers(acquireScript, func(context.Context) (any, error) { return waitingReply, nil })
		f.answers(heartbeatScript, func(context.Context) (any, error) { return waitingReply, nil })
		got := make(chan *Lease, 1)
		ctx, cancel := context.WithCancel(t.Context())
		var waiter sync.WaitGroup
		waiter.Go(func() {
			_, lease, err := l.Acquire(ctx, "k")
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("Acquire: %v", err)
			}
			got <- lease
		})
		synctest.Wait()
		test(t, f, got, func(message string, args ...any) {
			l.hear(fmt.Sprintf(message, args...))
			synctest.Wait()
		})
		cancel()
		waiter.Wait()
	})
}

func nothingYet(t *testing.T, got <-chan *Lease) {
	t.Helper()
	select {
	case lease := <-got:
		t.Fatalf("the waiter got %v", lease)
	default:
	}
}

func TestPushedGrantCountsFromTheLastHeartbeatAnsweredWaiting(t *testing.T) {
	withWaiter(t, func(t *testing.T, f *fakeRedis, got <-chan *Lease, tell func(string, ...any)) {
		time.Sleep(fakeLease / 2)
		heartbeats := f.requests(heartbeatScript)
		tell("granted 1 777 0 {k}")
		lease := <-got
		if want := heartbeats[len(heartbeats)-1].at.Add(fakeValidity); len(heartbeats) != 1 || !lease.Deadline().Equal(want) {
			t.Errorf("the deadline is %s after the only one of %d heartbeats, want %s", lease.Deadline().Sub(heartbeats[0].at), len(heartbeats), fakeValidity)
		}
		release(t, lease)
	})
}

// TestLatePushIsConfirmed has a grant arrive when, for all that is known, most of its lease is
// over.
func TestLatePushIsConfirmed(t *testing.T) {
	withWaiter(t, func(t *testing.T, f *fakeRedis, got <-chan *Lease, tell func(string, ...any)) {
		f.answers(heartbeatScript, down)
		time.Sleep(fakeLease * 3 / 4)
		tell("granted 1 777 0 {k}")
		nothingYet(t, got)
		f.answers(heartbeatScript, nil) // held
		lease := <-got
		heartbeats := f.requests(heartbeatScript)
		if want := heartbeats[len(heartbeats)-1].at.Add(fakeValidity); !lease.Deadline().Equal(want) {
			t.Errorf("the deadline is %s after the heartbeat that confirmed the grant, want %s", lease.Deadline().Sub(heartbeats[len(heartbeats)-1].at), fakeValidity)
		}
		release(t, lease)
	})
}

func TestGrantThatNobodyWantsIsReleased(t *testing.T) {
	withWaiter(t, func(t *testing.T, f *fakeRedis, got <-chan *Lease, tell func(string, ...any)) {
		tell("granted 99 777 0 {k}")
		nothingYet(t, got)
		tell("granted 98 777 0 {another}")
		time.Sleep(time.Nanosecond) // for the timer
		synctest.Wait()
		if n := len(f.requests(cancelScript)); n != 2 {
			t.Errorf("%d cancels, want one of each grant", n)
		}
	})
}

// TestDroppedAsksUnderANewAttempt: a process without a place any more queues again, and a
// push for the old attempt is of the past.
func TestDroppedAsksUnderANewAttempt(t *testing.T) {
	withWaiter(t, func(t *testing.T, f *fakeRedis, got <-chan *Lease, tell func(string, ...any)) {
		f.answers(heartbeatScript, func(context.Context) (any, error) { return droppedReply, nil })
		f.answers(acquireScript, func(context.Context) (any, error) {
			f.answers(heartbeatScript, func(context.Context) (any, error) { return waitingReply, nil })
			return waitingReply, nil
		})
		time.Sleep(fakeLease / 2)
		if n := len(f.requests(acquireScript)); n != 2 {
			t.Fatalf("%d requests to queue, want another one", n)
		}
		tell("granted 1 777 0 {k}")
		nothingYet(t, got)
		tell("granted 2 778 0 {k}")
		release(t, <-got)
	})
}

// TestAnAnswerToAPastAttemptIsNotBelieved: the attempt was given up and cancelled, and the next one has
// begun.
func TestAnAnswerToAPastAttemptIsNotBelieved(t *testing.T) {
	for name, answer := range map[string]func(m *lock) todo{
		"held":    func(m *lock) todo { return m.answered(1, reply{kind: replyHeld, epoch: 5}, true, 0, 1) },
		"waiting": func(m *lock) todo { return m.answered(1, reply{kind: replyWaiting}, true, 0, 1) },
		"none":    func(m *lock) todo { return new(Locker).failedLocked(m, 1, context.DeadlineExceeded) },
	} {
		var m lock
		m.ask(0, 1, time.Minute)
		if next := m.giveUp(); next.over != 1 {
			t.Fatalf("giving up = %+v, want that the attempt is cancelled", next)
		}
		m.ask(0, 2, time.Minute)
		if next := answer(&m); next != (todo{}) || m.state != asking || m.attempt != 2 {
			t.Errorf("%s: %+v, and the machine is %+v, want it to ask still", name, next, m)
		}
	}
}

// TestWhoIsNotQueuedByAReleaseAsksAtOnce: the lock was lost before, and the next goroutine has no place.
func TestWhoIsNotQueuedByAReleaseAsksAtOnce(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		l.subscription = &subscription{close: func() {}, since: l.now() + time.Hour}
		_, lost := acquire(t, l, t.Context(), "k")
		got := make(chan *Lease, 1)
		go func() {
			_, lease, _ := l.AcquireWith(t.Context(), "k", AcquireOptions{Lease: 2 * fakeLease})
			got <- lease
		}()
		synctest.Wait()
		f.answers(releaseScript, func(context.Context) (any, error) { return droppedReply, nil })
		if err := lost.Release(); !errors.Is(err, ErrNotHeld) {
			t.Errorf("Release = %v, want ErrNotHeld", err)
		}
		synctest.Wait()
		if n, beats := len(f.requests(acquireScript)), len(f.requests(heartbeatScript)); n != 2 || beats != 0 {
			t.Errorf("%d requests for the lock and %d heartbeats, want that the second goroutine asks anew", n, beats)
		}
		f.answers(releaseScript, nil)
		release(t, <-got)
	})
}

// TestAnOldAnswerPutsNothingOff: neither a heartbeat that is wanted at once, nor the time from which a
// pushed grant counts.
func TestAnOldAnswerPutsNothingOff(t *testing.T) {
	m := machine{state: waiting, attempt: 1, lease: fakeLease, bound: 5}
	m.resume(7)
	m.renewed(1, false, reply{kind: replyWaiting, ttl: fakeLease}, 3, 7)
	if _, renew := m.look(7); !renew || m.bound != 5 {
		t.Errorf("a heartbeat at once: %v; a grant counts from %d", renew, m.bound)
	}
}

func TestHeartbeatNeverQueues(t *testing.T) {
	s, holder := newScripted(t), newScripted(t)
	holder.acquires(1, true, replyHeld)
	r, err := s.heartbeat(t.Context(), s.n, 1)
	if err != nil || r.kind != replyDropped {
		t.Errorf("a heartbeat of who is not queued = %+v, %v, want dropped", r, err)
	}
	holder.releases(1, 0, replyWaiting)
	s.owns("")
}

// TestLateReleaseAndCancelLeaveTheNextHold have what ends one hold arrive in the next one of the
// same process.
func TestLateReleaseAndCancelLeaveTheNextHold(t *testing.T) {
	s := newScripted(t)
	s.acquires(2, true, replyHeld)
	s.releases(1, 0, replyDropped)
	s.owns("2")
	s.cancels(1)
	s.owns("2")
}

// TestNoClockOfTheClientIsSent looks for a number in requests that could be a time of day.
func TestNoClockOfTheClientIsSent(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		f.keepArgs = true
		_, lease := acquire(t, l, t.Context(), "k")
		time.Sleep(2 * fakeLease)
		release(t, lease)
		for _, arg := range f.numbers() {
			if arg > fakeLease.Milliseconds() {
				t.Errorf("%d was sent: more than a lease in milliseconds", arg)
			}
		}
	})
}

// TestWaitersDoNotShareTheirPatience has two callers of one locker wait for a time of their own.
func TestWaitersDoNotShareTheirPatience(t *testing.T) {
	const wait = 400 * time.Millisecond
	client, _ := newClient(t, shared.addr)
	for name, l := range map[string]Locking{"Locker": New(client, Options{Wait: wait})} {
		t.Cleanup(func() { l.Close(context.Background()) })
		holder, _ := newLocker(t, Options{})
		_, lease := acquire(t, holder, t.Context(), t.Name()+name)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				begun := time.Now()
				if _, _, err := l.Acquire(t.Context(), t.Name()+name); !errors.Is(err, ErrNotAcquired) {
					t.Errorf("Acquire = %v, want ErrNotAcquired", err)
				}
				if waited := time.Since(begun); waited < wait-10*time.Millisecond {
					t.Errorf("%s: one waited %s, want %s", name, waited, wait)
				}
			})
			time.Sleep(wait / 8)
		}
		all.Wait()
		release(t, lease)
	}
}
