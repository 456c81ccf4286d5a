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

// mend lets a wire go on.
func (w *wire) mend() {
	w.cutUp.Store(false)
	w.cutDown.Store(false)
}

// TestAcquireReturnsWhenItsCallerDoes: also with a client that waits for an answer for longer.
func TestAcquireReturnsWhenItsCallerDoes(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T, k Kind) {
		const patience = 100 * time.Millisecond
		for name, call := range map[string]func(l Locking) error{
			"Wait": func(l Locking) error {
				_, _, err := l.Acquire(t.Context(), t.Name())
				return err
			},
			"deadline": func(l Locking) error {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				_, _, err := l.Acquire(ctx, t.Name())
				return err
			},
			"cancelled": func(l Locking) error {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(patience, cancel)
				_, _, err := l.Acquire(ctx, t.Name())
				return err
			},
			"try": func(l Locking) error {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				_, _, err := l.TryAcquire(ctx, t.Name())
				return err
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newWire(t, shared.addr)
				clients := k.clients(t, func(db int) *redis.Client { return defaults(t, w.addr, 2*time.Second, db) })
				_, lease := acquire(t, k.make(t, clients, Options{}), t.Context(), t.Name()) // connects
				release(t, lease)
				o := Options{Lease: 20 * time.Second}
				if name == "Wait" {
					o.Wait = patience
				}
				l := k.make(t, clients, o)
				w.cut()
				defer w.mend()
				begun := time.Now()
				if err := call(l); !errors.Is(err, ErrNotAcquired) {
					t.Errorf("Acquire = %v, want ErrNotAcquired", err)
				}
				if took := time.Since(begun); took < patience || took > 20*patience {
					t.Errorf("Acquire returned after %s, want %s", took, patience)
				}
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
		l.subscription = &subscription{close: func() {}, since: l.now() + time.Hour}
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
		var asked atomic.Int64
		f.answers(acquireScript, func(context.Context) (any, error) {
			if asked.Add(1) == 1 {
				<-answered
				return nil, errDown
			}
			return heldReply, nil
		})
		l.subscription = &subscription{close: func() {}, since: l.now() + time.Hour}
		var failures atomic.Int64
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				_, lease, err := l.Acquire(t.Context(), "k")
				if err != nil {
					failures.Add(1)
					return
				}
				release(t, lease)
			})
		}
		synctest.Wait()
		close(answered)
		all.Wait()
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if n := len(f.requests(cancelScript)); n != 1 {
			t.Errorf("%d cancels, want that of the attempt which may have worked", n)
		}
		if n := failures.Load(); n != 1 {
			t.Errorf("%d of six callers failed with the error of one request", n)
		}
	})
}

// TestALaterCallerDoesNotShareATimeout: it came after the request was sent.
func TestALaterCallerDoesNotShareATimeout(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		l.subscription = &subscription{close: func() {}, since: l.now() + time.Hour}
		f.answers(acquireScript, noAnswer)
		var all sync.WaitGroup
		all.Go(func() {
			if _, _, err := l.Acquire(t.Context(), "k"); err == nil {
				t.Error("the asker was answered")
			}
		})
		synctest.Wait()
		time.Sleep(time.Second)
		all.Go(func() {
			_, lease, err := l.Acquire(t.Context(), "k")
			if err != nil {
				t.Errorf("Acquire = %v, want that it asks anew", err)
				return
			}
			release(t, lease)
		})
		synctest.Wait()
		f.answers(acquireScript, nil) // Redis is back for the next request
		all.Wait()
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
		l.subscription = &subscription{close: func() {}, since: l.now() + time.Hour}
		over := make(chan struct{})
		f.answers(acquireScript, func(context.Context) (any, error) {
			<-over
			return nil, os.ErrDeadlineExceeded
		})
		ctx, cancel := context.WithCancel(t.Context())
		go l.Acquire(ctx, "k")
		synctest.Wait()
		got := make(chan error, 1)
		go func() {
			_, lease, err := l.AcquireWith(t.Context(), "k", AcquireOptions{Lease: 2 * fakeLease})
			if err == nil {
				err = lease.Release()
			}
			got <- err
		}()
		synctest.Wait()
		f.answers(acquireScript, func(context.Context) (any, error) { return waitingReply, nil })
		cancel()
		synctest.Wait()
		close(over)
		synctest.Wait()
		l.hear("granted 2 777 0 {k}")
		if err := <-got; err != nil {
			t.Errorf("Acquire = %v, want that it waits on", err)
		}
	})
}

// TestAGrantIsNotServedWithAnotherLease: its waiter has gone, and the next one wants another lease.
func TestAGrantIsNotServedWithAnotherLease(t *testing.T) {
	withFake(t, func(t *testing.T, f *fakeRedis, l *Locker) {
		l.subscription = &subscription{close: func() {}, since: l.now() + time.Hour}
		f.answers(acquireScript, noAnswer)
		ctx, cancel := context.WithCancel(t.Context())
		go l.Acquire(ctx, "k")
		synctest.Wait()
		got := make(chan *Lease, 1)
		go func() {
			_, lease, _ := l.AcquireWith(t.Context(), "k", AcquireOptions{Lease: 2 * fakeLease})
			got <- lease
		}()
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
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if n := len(f.requests(cancelScript)); n != 1 {
			t.Errorf("%d cancels, want that of the attempt that nobody wanted any more", n)
		}
		release(t, lease)
	})
}
