package redislock

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// What only a change of the lock can break, and no copy needs.

// TestAHeartbeatsErrorIsSaid. A renewal's is the holder's own: others of its process wait for its release.
func TestAHeartbeatsErrorIsSaid(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		listening(l)
		var mu sync.Mutex
		var told []string
		l.opts.Hooks.NotServed = func(_ context.Context, e Event) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, e.Key)
		}
		_, lease := acquire(t, l, t.Context(), "held")
		f.answers(acquireScript, says(waitingReply))
		for key, want := range map[string]error{"held": ErrNotAcquired, "k": errDown, "for a moment": ErrNotAcquired} {
			f.answers(renewScript, map[bool]func(context.Context) (any, error){true: down}[key == "held"])
			f.answers(heartbeatScript, func(context.Context) (any, error) {
				if key == "for a moment" {
					f.answers(heartbeatScript, says(waitingReply))
				}
				return nil, errDown
			})
			if _, _, err := l.AcquireWith(t.Context(), key, AcquireOptions{Wait: fakeLease * 2 / 5}); !errors.Is(err, want) {
				t.Errorf("Acquire(%q) = %v, want %v", key, err, want)
			}
		}
		f.answers(acquireScript, noAnswer)
		if _, _, err := l.AcquireWith(t.Context(), "k", AcquireOptions{Wait: tellAfter / 2}); errors.Is(err, errDown) {
			t.Errorf("Acquire = %v, which was the last wait's", err)
		}
		f.answers(acquireScript, func(context.Context) (any, error) {
			time.Sleep(time.Millisecond)
			f.answers(acquireScript, says(waitingReply))
			return nil, redisError("READONLY a replica")
		})
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if _, _, err := l.AcquireWith(t.Context(), "then taken", AcquireOptions{Wait: time.Second}); !errors.Is(err, ErrNotAcquired) {
					t.Errorf("Acquire = %v after Redis had answered, want ErrNotAcquired", err)
				}
			})
		}
		both.Wait()
		if slices.Sort(told); !slices.Equal(told, []string{"for a moment", "k", "then taken", "then taken"}) {
			t.Errorf("of Redis' errors, these waits were told: %q", told)
		}
		release(t, lease)
	})
}

// TestLeavePassesNothingOn: the lock stays taken, also for those of its process, and for a millisecond at least.
func TestLeavePassesNothingOn(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		listening(l)
		_, lease := acquire(t, l, t.Context(), "k")
		got := asks(t, t.Context(), l, "k")
		synctest.Wait()
		f.keepArgs = true
		err := lease.Leave(time.Microsecond)
		synctest.Wait()
		if err != nil || len(f.args) < 6 || f.args[5] != int64(1) || len(f.requests(acquireScript)) != 2 {
			t.Errorf("Leave = %v with %v; %d requests for the lock, want that the waiter asks anew", err, f.args, len(f.requests(acquireScript)))
		}
		release(t, <-got)
	})
}

// TestTheContextsCauseStandsBesideAnError of Redis, once.
func TestTheContextsCauseStandsBesideAnError(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		ours := errors.New("ours")
		ended, cancel := context.WithCancelCause(t.Context())
		cancel(ours)
		for i, ctx := range []context.Context{t.Context(), ended, ended} {
			w := &waiter{ctx: ctx, key: "k", begun: l.now(), answer: make(chan result, 1)}
			w.answer <- result{err: failed(ErrUnavailable, "acquire", "k", []error{errDown, errDown, ours}[i])}
			if _, _, err := l.await(newLock("{k}"), w); !errors.Is(err, ErrUnavailable) || strings.Count(err.Error(), "ours") != min(i, 1) || strings.Contains(err.Error(), "%!") {
				t.Errorf("Acquire = %v, want the cause, if there is one, beside that Redis is down", err)
			}
		}
	})
}

// TestAnErrorOfAPastAttemptIsNobodys: its asker has gone, and the next waiter has asked for a lease of its own.
func TestAnErrorOfAPastAttemptIsNobodys(t *testing.T) {
	for _, past := range []error{os.ErrDeadlineExceeded, redisError("READONLY a replica")} {
		withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
			listening(l)
			l.opts.Hooks.NotServed = func(_ context.Context, e Event) { t.Errorf("a waiter was told %v", e.Err) }
			over := make(chan struct{})
			f.answers(acquireScript, func(context.Context) (any, error) {
				<-over
				return nil, past
			})
			ctx, cancel := context.WithCancel(t.Context())
			go l.Acquire(ctx, "k")
			synctest.Wait()
			l.opts.Lease *= 2
			got := asks(t, t.Context(), l, "k")
			synctest.Wait()
			f.answers(acquireScript, says(waitingReply))
			cancel()
			synctest.Wait()
			close(over)
			synctest.Wait()
			l.mu.Lock()
			heartbeat := l.server.command(heartbeatScript, l.locks["{k}"], 1)
			heartbeat.SetErr(past)
			l.renewedLocked(heartbeat, l.now())
			l.unlock()
			time.Sleep(2 * tellAfter)
			l.hear("granted 2 777 0 {k}")
			release(t, <-got)
		})
	}
}

// TestAGrantIsNotServedWithAnotherLease: its waiter has gone, and the next one wants another lease.
func TestAGrantIsNotServedWithAnotherLease(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		listening(l)
		f.answers(acquireScript, noAnswer)
		ctx, cancel := context.WithCancel(t.Context())
		go l.Acquire(ctx, "k")
		synctest.Wait()
		l.opts.Lease *= 2
		got := asks(t, t.Context(), l, "k")
		synctest.Wait()
		f.answers(acquireScript, nil)
		l.mu.Lock()
		n := l.locks["{k}"]
		cancel() // its goroutine has not noticed that
		l.settleLocked(n, n.answered(n.attempt, reply{kind: replyHeld, epoch: 1}, true, l.now(), l.now()), Free)
		l.unlock()
		lease := <-got
		if left := time.Until(lease.Deadline()); left < fakeLease {
			t.Errorf("%s are left of the lease, want those of the waiter's own", left)
		}
		settled()
		if n := len(f.requests(cancelScript)); n != 1 {
			t.Errorf("%d cancels, want that of the attempt that nobody wanted any more", n)
		}
		release(t, lease)
	})
}
