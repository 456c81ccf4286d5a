package redislock

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// defaults connects with the options that go-redis has by default, but for a shorter timeout.
func defaults(t *testing.T, addr string, timeout time.Duration, db ...int) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, DB: append(db, 0)[0], ReadTimeout: timeout, WriteTimeout: timeout})
	t.Cleanup(func() { client.Close() })
	return client
}

// closing has a Locker closed at the end of a test, however silent its Redis is.
func closing(t *testing.T, l *Locker) *Locker {
	t.Cleanup(func() { l.Close(context.Background()) })
	return l
}

// TestAcquireReturnsWhenItsCallerDoes: while another one has the lock, and while Redis is silent, also with a
// client that waits for an answer for longer. It says which end it was.
func TestAcquireReturnsWhenItsCallerDoes(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, k Kind) {
		const patience = 100 * time.Millisecond
		for name, end := range map[string]error{"Wait": nil, "deadline": context.DeadlineExceeded, "cancelled": context.Canceled, "try": context.DeadlineExceeded} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newWire(t, shared.addr)
				clients := k.clients(t, func(db int) *redis.Client { return defaults(t, w.addr, 2*time.Second, db) })
				_, lease := acquire(t, k.make(t, clients, Options{}), t.Context(), t.Name()) // connects
				o := Options{Lease: 20 * time.Second}
				if end == nil {
					o.Wait = patience
				}
				l := k.make(t, clients, o)
				for _, silent := range []bool{false, true} {
					if w.set(silent); name == "try" && !silent {
						continue
					}
					begun, ctx, cancel := time.Now(), t.Context(), context.CancelFunc(func() {})
					call := l.Acquire
					switch {
					case name == "cancelled":
						ctx, cancel = context.WithCancel(ctx)
						time.AfterFunc(patience, cancel)
					case end != nil:
						ctx, cancel = context.WithTimeout(ctx, patience)
					}
					if name == "try" {
						call = l.TryAcquire
					}
					if _, _, err := call(ctx, t.Name()); !errors.Is(err, ErrNotAcquired) || errors.Is(err, context.DeadlineExceeded) != (end == context.DeadlineExceeded) || end != nil && !errors.Is(err, end) {
						t.Errorf("silent %v: Acquire = %v, want ErrNotAcquired and %v", silent, err, end)
					}
					if took := time.Since(begun); took < patience*9/10 || took > 20*patience {
						t.Errorf("silent %v: Acquire returned after %s, want %s", silent, took, patience)
					}
					cancel()
				}
				w.set(false)
				_ = lease.Release()
			})
		}
	})
}

// TestWaitersShareATimeout, and no other error.
func TestWaitersShareATimeout(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		const timeout = time.Second
		f.answers(acquireScript, func(context.Context) (any, error) {
			time.Sleep(timeout)
			return nil, os.ErrDeadlineExceeded
		})
		listening(l)
		begun := time.Now()
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				_, _, err := l.Acquire(t.Context(), "k")
				if network, ok := errors.AsType[net.Error](err); !ok || !network.Timeout() {
					t.Errorf("Acquire = %v, want a timeout", err)
				}
			})
		}
		all.Wait()
		if took := time.Since(begun); took > 2*timeout { // the first request, and one for those who came after it
			t.Errorf("six waiters failed within %s, want within two timeouts of %s", took, timeout)
		}
	})
}

// TestOtherErrorsAreTheAskersOwn: those who wait beside it ask anew.
func TestOtherErrorsAreTheAskersOwn(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		answered := make(chan struct{})
		f.answers(acquireScript, func(context.Context) (any, error) {
			<-answered
			f.answers(acquireScript, nil)
			return nil, errDown
		})
		listening(l)
		var failures atomic.Int64
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				if _, lease, err := l.Acquire(t.Context(), "k"); err != nil {
					failures.Add(1)
				} else {
					release(t, lease)
				}
			})
		}
		synctest.Wait()
		close(answered)
		all.Wait()
		settled()
		if n, cancels := failures.Load(), len(f.requests(cancelScript)); n != 1 || cancels != 1 {
			t.Errorf("%d of six callers failed with the error of one request, and %d attempts which may have worked were cancelled", n, cancels)
		}
	})
}

// TestALaterCallerDoesNotShareATimeout: it came after the request was sent.
func TestALaterCallerDoesNotShareATimeout(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		listening(l)
		f.answers(acquireScript, noAnswer)
		first := make(chan error)
		go func() {
			_, _, err := l.Acquire(t.Context(), "k")
			first <- err
		}()
		time.Sleep(time.Second)
		second := asks(t, t.Context(), l, "k")
		synctest.Wait()
		f.answers(acquireScript, nil) // Redis is back for the next request
		if err := <-first; err == nil {
			t.Error("the asker was answered")
		}
		release(t, <-second)
	})
}

// TestAnErrorAtTheEndOfTheWait says that, too: from that time on, and not before.
func TestAnErrorAtTheEndOfTheWait(t *testing.T) {
	withFake(t, func(t *testing.T, _ *fakeRedis, l *Locker) {
		w := &waiter{AcquireOptions: AcquireOptions{Wait: time.Second}, ctx: t.Context(), key: "k", begun: l.now()}
		time.Sleep(time.Second - time.Nanosecond)
		for _, over := range []bool{false, true} {
			if _, _, err := l.tell(w, result{err: errDown}); !errors.Is(err, errDown) || errors.Is(err, ErrNotAcquired) != over {
				t.Errorf("the wait is over: %v; Acquire = %v", over, err)
			}
			time.Sleep(time.Nanosecond)
		}
	})
}

// TestATimeoutOfAPastAttemptIsNobodys: its asker has gone, and the next waiter has asked for a lease of its own.
func TestATimeoutOfAPastAttemptIsNobodys(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		listening(l)
		over := make(chan struct{})
		f.answers(acquireScript, func(context.Context) (any, error) {
			<-over
			return nil, os.ErrDeadlineExceeded
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
		l.hear("granted 2 777 0 {k}")
		release(t, <-got)
	})
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
