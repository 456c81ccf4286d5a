package redislock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// What remains of the rules in docs/lock-protocol.md: each has a test by name.

// withWaiter has a Locker wait in Redis's queue, in fake time. Got takes what it waits for; told
// is a message to the Locker.
func withWaiter(t *testing.T, test func(t *testing.T, f *fakeRedis, got <-chan *Lease, tell func(message string, args ...any))) {
	withListening(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		f.answers(acquireScript, says(waitingReply))
		f.answers(heartbeatScript, says(waitingReply))
		ctx, cancel := context.WithCancel(t.Context())
		got := waits(t, ctx, l, "k")
		test(t, f, got, func(message string, args ...any) {
			l.hear(fmt.Sprintf(message, args...))
			synctest.Wait()
		})
		cancel()
	})
}

func TestPushedGrantCountsFromTheLastHeartbeatAnsweredWaiting(t *testing.T) {
	withWaiter(t, func(t *testing.T, f *fakeRedis, got <-chan *Lease, tell func(string, ...any)) {
		time.Sleep(fakeLease / 2)
		f.answers(heartbeatScript, down)
		time.Sleep(fakeLease / 5)
		heartbeats := f.requests(heartbeatScript)
		tell("granted 1 777 0 {k}")
		lease := <-got
		if want := heartbeats[0].at.Add(fakeValidity); len(heartbeats) < 2 || !lease.Deadline().Equal(want) || lease.hold.lock.trouble != nil {
			t.Errorf("the deadline is %s after the first of %d heartbeats, want %s; there still is %v", lease.Deadline().Sub(heartbeats[0].at), len(heartbeats), fakeValidity, lease.hold.lock.trouble)
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
		if len(got) > 0 {
			t.Fatal("it is held without an answer")
		}
		f.answers(heartbeatScript, nil) // held
		lease := <-got
		heartbeats := f.requests(heartbeatScript)
		if want := heartbeats[len(heartbeats)-1].at.Add(fakeValidity); !lease.Deadline().Equal(want) {
			t.Errorf("the deadline is %s after the heartbeat that confirmed the grant, want %s", lease.Deadline().Sub(heartbeats[len(heartbeats)-1].at), fakeValidity)
		}
		release(t, lease)
	})
}

// TestGrantThatNobodyWantsIsReleased. A process without a place any more queues again under a new attempt, and a
// push for the old one is of the past.
func TestGrantThatNobodyWantsIsReleased(t *testing.T) {
	withWaiter(t, func(t *testing.T, f *fakeRedis, got <-chan *Lease, tell func(string, ...any)) {
		f.answers(heartbeatScript, says(droppedReply))
		f.answers(acquireScript, func(context.Context) (any, error) {
			f.answers(heartbeatScript, says(waitingReply))
			return waitingReply, nil
		})
		time.Sleep(fakeLease / 2)
		tell("granted 1 777 0 {k}")
		tell("granted 98 777 0 {another}")
		settled()
		if n, cancels := len(f.requests(acquireScript)), len(f.requests(cancelScript)); n != 2 || cancels != 2 || len(got) > 0 {
			t.Errorf("%d requests to queue and %d cancels, want two of each; got the lock: %v", n, cancels, len(got) > 0)
		}
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
	withListening(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		_, lost, err := l.AcquireWith(t.Context(), "k", AcquireOptions{Lease: 2 * fakeLease})
		must(t, err)
		got := waits(t, t.Context(), l, "k")
		after := func(d time.Duration, answer any) func(context.Context) (any, error) {
			return func(context.Context) (any, error) { time.Sleep(d); return answer, nil }
		}
		f.answers(releaseScript, after(tellAfter, droppedReply))
		f.answers(acquireScript, after(tellAfter/2, heldReply))
		if err := lost.Release(); !errors.Is(err, ErrNotHeld) {
			t.Errorf("Release = %v, want ErrNotHeld", err)
		}
		synctest.Wait()
		if _, _, err := l.TryAcquire(t.Context(), "k"); !errors.Is(err, ErrNotAcquired) {
			t.Errorf("TryAcquire = %v, and Redis has just answered", err)
		}
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
	if next := nextHeartbeat(fakeLease, time.Second, 0); next <= time.Second || next > time.Second+fakeLease/50 {
		t.Errorf("the next heartbeat is after %s, want just after a dead holder's lock is free", next)
	}
}

// TestNoClockOfTheClientIsSent looks for a number in requests that could be a time of day.
func TestNoClockOfTheClientIsSent(t *testing.T) {
	withListening(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		f.keepArgs = true
		_, lease := acquire(t, l, t.Context(), "k")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for _, next := range []context.Context{t.Context(), ctx} {
			time.Sleep(2 * fakeLease) // too long for the lock to be passed on without a request
			got := waits(t, next, l, "k")
			if release(t, lease); next == ctx {
				cancel()
			}
			lease = <-got // by a heartbeat
		}
		settled()
		for _, script := range allScripts {
			if len(f.requests(script)) == 0 {
				t.Errorf("%s was not sent", script.name)
			}
		}
		for _, arg := range f.args {
			if n, err := strconv.ParseInt(fmt.Sprint(arg), 10, 64); err == nil && n > fakeLease.Milliseconds() {
				t.Errorf("%v was sent: more than a lease in milliseconds", arg)
			}
		}
	})
}
