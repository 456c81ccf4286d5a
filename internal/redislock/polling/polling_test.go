package polling

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"stocklock/internal/redislock"
)

// The contract of a locker is tested in package redislock, for both packages and with a real server. The
// tests of this file stand in for the servers of a quorum, under virtual time.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const lease = 10 * time.Second

// fakeServer is a Redis in small. It knows what a quorum sends.
type fakeServer struct {
	mu     sync.Mutex
	values map[string]string
	ends   map[string]time.Time
	silent bool
	before func(kind string) // of a request: set, extend or delete
	log    []string
}

func (f *fakeServer) Subscribe(context.Context, ...string) *redis.PubSub { return nil }
func (f *fakeServer) Pipeline() redis.Pipeliner                          { return &fakePipeline{f: f} }

type fakePipeline struct {
	redis.Pipeliner
	f    *fakeServer
	cmds []redis.Cmder
}

func (p *fakePipeline) BatchProcess(_ context.Context, cmds ...redis.Cmder) error {
	p.cmds = append(p.cmds, cmds...)
	return nil
}

func (p *fakePipeline) Exec(ctx context.Context) ([]redis.Cmder, error) {
	for _, cmd := range p.cmds {
		_ = p.f.Process(ctx, cmd)
	}
	return p.cmds, nil
}

func (f *fakeServer) Process(ctx context.Context, cmd redis.Cmder) error {
	if once, ok := cmd.(interface{ NoRetry() bool }); !ok || !once.NoRetry() {
		panic("a request that the client may repeat")
	}
	args := cmd.Args()
	kind, key, value, length := "set", args[1], args[2], args[4]
	if args[0] == "eval" {
		kind, key, value = "delete", args[3], args[4]
		if args[1] == compareExtend {
			kind, length = "extend", args[5]
		}
	}
	f.mu.Lock()
	before := f.before
	f.mu.Unlock()
	if before != nil {
		before(kind)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.silent {
		f.mu.Unlock()
		time.Sleep(lease) // a client that ignores its context
		f.mu.Lock()
		cmd.SetErr(context.DeadlineExceeded)
		return cmd.Err()
	}
	f.log = append(f.log, kind)
	k, v := fmt.Sprint(key), fmt.Sprint(value)
	if !time.Now().Before(f.ends[k]) {
		delete(f.values, k)
	}
	had, answer := f.values[k], any(int64(1))
	switch {
	case kind == "set" && had != "":
		cmd.SetErr(redis.Nil)
		return redis.Nil
	case kind == "set":
		f.values[k], answer = v, "OK"
	case had != v:
		answer = int64(0)
	case kind == "delete":
		delete(f.values, k)
	}
	if kind != "delete" && answer != int64(0) {
		f.ends[k] = time.Now().Add(time.Duration(length.(int64)) * time.Millisecond)
	}
	cmd.(interface{ SetVal(any) }).SetVal(answer)
	return nil
}

// value is what the server has of the lock, if it is not over.
func (f *fakeServer) value() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !time.Now().Before(f.ends["{k}"]) {
		return ""
	}
	return f.values["{k}"]
}

func (f *fakeServer) requests() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.log)
}

// restart has the server come back without its data.
func (f *fakeServer) restart() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.values)
}

func (f *fakeServer) set(what func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	what()
}

// withServers runs a test with n servers, and what makes a Locker on them.
func withServers(t *testing.T, n int, test func(t *testing.T, f []*fakeServer, locker func(o redislock.Options) *Locker)) {
	synctest.Test(t, func(t *testing.T) {
		var f []*fakeServer
		for range n {
			f = append(f, &fakeServer{values: map[string]string{}, ends: map[string]time.Time{}})
		}
		test(t, f, func(o redislock.Options) *Locker {
			o.Lease = lease
			l := NewQuorum(f, Options{Options: o})
			t.Cleanup(func() {
				if err := l.Close(context.Background()); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
			return l
		})
	})
}

func acquire(t *testing.T, l *Locker, ctx context.Context) (context.Context, *redislock.Lease) {
	t.Helper()
	held, lease, err := l.Acquire(ctx, "k")
	if err != nil {
		t.Fatalf("Acquire: %v", err)
	}
	synctest.Wait() // for the servers that were not waited for
	return held, lease
}

func release(t *testing.T, lease *redislock.Lease) {
	t.Helper()
	if err := lease.Release(); err != nil {
		t.Errorf("Release: %v", err)
	}
}

// TestAMajorityDecides: a silent minority is not waited for, and a minority that answers is not enough.
func TestAMajorityDecides(t *testing.T) {
	withServers(t, 5, func(t *testing.T, f []*fakeServer, locker func(redislock.Options) *Locker) {
		a, b := locker(redislock.Options{}), locker(redislock.Options{Wait: 3 * lease})
		for _, s := range f[:2] {
			s.set(func() { s.silent = true })
		}
		begun := time.Now()
		held, first := acquire(t, a, t.Context())
		if took := time.Since(begun); took != 0 || first.Token() != 0 {
			t.Errorf("Acquire took %s, and the token is %d", took, first.Token())
		}
		if _, _, err := b.TryAcquire(t.Context(), "k"); !errors.Is(err, redislock.ErrNotAcquired) {
			t.Errorf("a second holder: %v", err)
		}
		time.Sleep(5 * lease)
		if held.Err() != nil {
			t.Errorf("the hold ended: %v", context.Cause(held))
		}
		begun = time.Now()
		release(t, first)
		if took := time.Since(begun); took != 0 {
			t.Errorf("Release took %s", took)
		}
		held, second := acquire(t, b, t.Context())
		f[2].set(func() { f[2].silent = true })
		<-held.Done()
		if !errors.Is(context.Cause(held), redislock.ErrLeaseOver) {
			t.Errorf("without a majority the hold ended with %v", context.Cause(held))
		}
		if err := second.Release(); !errors.Is(err, redislock.ErrNotHeld) {
			t.Errorf("Release = %v, want ErrNotHeld", err)
		}
		begun = time.Now()
		if _, _, err := b.Acquire(t.Context(), "k"); !errors.Is(err, redislock.ErrUnavailable) {
			t.Errorf("Acquire without a majority = %v", err)
		}
		if took := time.Since(begun); took != 3*lease {
			t.Errorf("it took %s, want Options.Wait", took)
		}
		begun = time.Now()
		if _, _, err := a.TryAcquire(t.Context(), "k"); !errors.Is(err, redislock.ErrUnavailable) || time.Since(begun) != lease/5 {
			t.Errorf("TryAcquire without a majority = %v after %s", err, time.Since(begun))
		}
		for _, s := range f[:3] {
			s.set(func() { s.silent = false })
		}
		_, third := acquire(t, a, t.Context())
		release(t, third)
		time.Sleep(lease) // until the silent requests are over
	})
}

// TestASplitVoteDoesNotWaitForASilentServer: each of two has one of the servers that answer. Both let go soon, and not
// when the third one has timed out. Close waits for the requests to it.
func TestASplitVoteDoesNotWaitForASilentServer(t *testing.T) {
	withServers(t, 3, func(t *testing.T, f []*fakeServer, locker func(redislock.Options) *Locker) {
		f[0].values["{k}"], f[0].ends["{k}"] = "somebody else", time.Now().Add(time.Hour)
		f[2].set(func() { f[2].silent = true })
		l, begun := locker(redislock.Options{}), time.Now()
		if _, _, err := l.TryAcquire(t.Context(), "k"); !errors.Is(err, redislock.ErrNotAcquired) || time.Since(begun) > 20*time.Millisecond {
			t.Errorf("TryAcquire = %v after %s", err, time.Since(begun))
		}
		if err := l.Close(t.Context()); err != nil || time.Since(begun) < lease {
			t.Errorf("Close = %v after %s, while a request is under way", err, time.Since(begun))
		}
	})
}

// TestAFailedTryLeavesNothing: what it has set on a minority is deleted.
func TestAFailedTryLeavesNothing(t *testing.T) {
	withServers(t, 3, func(t *testing.T, f []*fakeServer, locker func(redislock.Options) *Locker) {
		for _, s := range f[:2] {
			s.values["{k}"], s.ends["{k}"] = "somebody else", time.Now().Add(time.Hour)
		}
		if _, _, err := locker(redislock.Options{}).TryAcquire(t.Context(), "k"); !errors.Is(err, redislock.ErrNotAcquired) {
			t.Errorf("TryAcquire = %v, want ErrNotAcquired", err)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if f[0].value() != "somebody else" || f[2].value() != "" {
			t.Errorf("the servers have %q, %q and %q", f[0].value(), f[1].value(), f[2].value())
		}
	})
}

// TestAForeignMajorityEndsTheHold, and is left alone.
func TestAForeignMajorityEndsTheHold(t *testing.T) {
	withServers(t, 3, func(t *testing.T, f []*fakeServer, locker func(redislock.Options) *Locker) {
		held, lease := acquire(t, locker(redislock.Options{}), t.Context())
		for _, s := range f[:2] {
			s.set(func() { s.values["{k}"] = "somebody else" })
		}
		<-held.Done()
		if !errors.Is(context.Cause(held), redislock.ErrTaken) {
			t.Errorf("the hold ended with %v", context.Cause(held))
		}
		if err := lease.Release(); !errors.Is(err, redislock.ErrNotHeld) {
			t.Errorf("Release = %v, want ErrNotHeld", err)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if f[0].value() != "somebody else" || f[2].value() != "" {
			t.Errorf("the servers have %q and %q", f[0].value(), f[2].value())
		}
	})
}

// TestAHoldOutlivesRollingRestarts of all servers, one after the other, each of which comes back without its data.
func TestAHoldOutlivesRollingRestarts(t *testing.T) {
	withServers(t, 3, func(t *testing.T, f []*fakeServer, locker func(redislock.Options) *Locker) {
		a, b := locker(redislock.Options{}), locker(redislock.Options{})
		held, lease := acquire(t, a, t.Context())
		_, other, err := a.Acquire(t.Context(), "other") // so that renewals may go out together
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range f {
			s.restart()
			time.Sleep(time.Until(lease.Deadline()))
			if held.Err() != nil || s.value() == "" || !other.Valid() {
				t.Fatalf("after restart %d the server has %q, and the hold ended with %v", i, s.value(), context.Cause(held))
			}
			if _, _, err := b.TryAcquire(t.Context(), "k"); !errors.Is(err, redislock.ErrNotAcquired) {
				t.Errorf("a second holder: %v", err)
			}
		}
		release(t, lease)
		release(t, other)
		time.Sleep(time.Millisecond) // the last server may be asked after the majority has answered
		synctest.Wait()
		for i, s := range f {
			if s.value() != "" {
				t.Errorf("server %d still has the lock", i)
			}
		}
	})
}

// TestARestartOfAMajorityIsALoss: the minority that is left must not set the value again. Another holder may
// have been between.
func TestARestartOfAMajorityIsALoss(t *testing.T) {
	withServers(t, 3, func(t *testing.T, f []*fakeServer, locker func(redislock.Options) *Locker) {
		held, _ := acquire(t, locker(redislock.Options{}), t.Context())
		f[0].restart()
		f[1].restart()
		<-held.Done()
		time.Sleep(lease)
		for i, s := range f {
			if !errors.Is(context.Cause(held), redislock.ErrTaken) || s.value() != "" {
				t.Errorf("the hold ended with %v, and server %d has %q", context.Cause(held), i, s.value())
			}
		}
	})
}

// TestNothingIsSetAfterTheRelease: neither by a renewal whose answer comes later, nor by one that is setting the
// value again as the release begins.
func TestNothingIsSetAfterTheRelease(t *testing.T) {
	for _, late := range []string{"extend", "set"} {
		withServers(t, 3, func(t *testing.T, f []*fakeServer, locker func(redislock.Options) *Locker) {
			_, lease := acquire(t, locker(redislock.Options{}), t.Context())
			begun, going := make(chan struct{}), make(chan struct{})
			var once sync.Once
			f[0].set(func() {
				f[0].before = func(kind string) {
					if kind == late {
						once.Do(func() { close(begun); <-going })
					}
				}
			})
			f[0].restart()
			<-begun
			synctest.Wait() // the other servers have renewed it
			released := make(chan error)
			go func() { released <- lease.Release() }()
			if err := <-released; err != nil {
				t.Errorf("Release: %v", err)
			}
			synctest.Wait()
			close(going)
			synctest.Wait()
			if f[0].value() != "" {
				t.Errorf("%s: the server has the lock after the release: %v", late, f[0].log)
			}
		})
	}
}

// TestNothingIsSetAfterTheDeadline: of a hold that its holder has forgotten, or whose renewal took too long.
func TestNothingIsSetAfterTheDeadline(t *testing.T) {
	withServers(t, 3, func(t *testing.T, f []*fakeServer, locker func(redislock.Options) *Locker) {
		l := locker(redislock.Options{MaxHold: lease})
		q := &quorum{lease: lease, until: map[string]time.Time{}}
		renewal := &vote{script: "renew", value: "v"}
		q.hold(&vote{script: "acquire", value: "v"}, time.Now())
		time.Sleep(lease)
		if q.hold(renewal, time.Now()); renewal.again || q.holds("v") {
			t.Error("a renewal counts that was answered after the deadline")
		}
		for i := range 1000 {
			if _, _, err := l.Acquire(t.Context(), fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(lease / 10)
		}
		l.quorum.mu.Lock()
		defer l.quorum.mu.Unlock()
		if kept := len(l.quorum.until); kept > 200 {
			t.Errorf("%d of 1,000 forgotten holds are kept", kept)
		}
	})
}

// TestOneGoroutineAsks: the others of a process wait for their turn, and have it in the order in which they came,
// when the lock is released here.
func TestOneGoroutineAsks(t *testing.T) {
	withServers(t, 1, func(t *testing.T, f []*fakeServer, locker func(redislock.Options) *Locker) {
		l := locker(redislock.Options{})
		_, held := acquire(t, locker(redislock.Options{}), t.Context())
		start, order := f[0].requests(), make(chan int, 10)
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				_, lease := acquire(t, l, t.Context())
				order <- i
				time.Sleep(time.Second)
				release(t, lease)
			})
			time.Sleep(time.Nanosecond)
		}
		synctest.Wait()
		before := f[0].requests()
		if before-start != 1 {
			t.Errorf("10 goroutines asked %d times at first, want one of them", before-start)
		}
		time.Sleep(time.Second)
		if n := f[0].requests() - before; n < 30 || n > 100 {
			t.Errorf("10 goroutines asked %d times in a second, want one every 20 ms", n)
		}
		release(t, held)
		begun := time.Now()
		all.Wait()
		if took := time.Since(begun); took > 10*time.Second+30*time.Millisecond {
			t.Errorf("10 holds of a second took %s: the lock lay idle", took)
		}
		for i := range 10 {
			if is := <-order; is != i {
				t.Errorf("goroutine %d had the lock as number %d", is, i)
			}
		}
		if len(l.turns) > 0 {
			t.Errorf("%d turns are left", len(l.turns))
		}
	})
}

// TestAnOutageIsToldToAll: those who wait for their turn, or have none, are not told that others have the lock.
func TestAnOutageIsToldToAll(t *testing.T) {
	withServers(t, 3, func(t *testing.T, f []*fakeServer, locker func(redislock.Options) *Locker) {
		told := make(chan error, 9)
		l := locker(redislock.Options{Wait: 5 * time.Second, Hooks: redislock.Hooks{NotServed: func(_ context.Context, e redislock.Event) { told <- e.Err }}})
		for _, s := range f {
			s.set(func() { s.silent = true })
		}
		failed := make(chan error, 3)
		for range 2 {
			go func() {
				_, _, err := l.Acquire(t.Context(), "k")
				failed <- err
			}()
			time.Sleep(3 * time.Second) // the first one has had an answer
		}
		if _, _, err := l.TryAcquire(t.Context(), "k"); !errors.Is(err, redislock.ErrUnavailable) || errors.Is(err, redislock.ErrNotAcquired) {
			t.Errorf("TryAcquire beside who asks = %v", err)
		}
		for range 2 {
			if err := <-failed; !errors.Is(err, redislock.ErrUnavailable) || errors.Is(err, redislock.ErrNotAcquired) {
				t.Errorf("Acquire = %v, want that the servers do not answer", err)
			}
		}
		if len(told) != 2 {
			t.Errorf("%d of 2 were told meanwhile", len(told))
		}
		if err := l.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
		if _, _, err := l.TryAcquire(t.Context(), "k"); !errors.Is(err, redislock.ErrClosed) {
			t.Errorf("TryAcquire after Close = %v", err)
		}
		time.Sleep(lease)
	})
}

// TestLeave keeps the lock for as long as it says.
func TestLeave(t *testing.T) {
	withServers(t, 3, func(t *testing.T, f []*fakeServer, locker func(redislock.Options) *Locker) {
		_, held := acquire(t, locker(redislock.Options{}), t.Context())
		if err := held.Leave(time.Hour); err != nil {
			t.Fatalf("Leave: %v", err)
		}
		time.Sleep(time.Hour - time.Second)
		if f[0].value() == "" || f[1].value() == "" || f[2].value() == "" {
			t.Error("the lock was free before its time")
		}
		time.Sleep(time.Second)
		if f[0].value() != "" {
			t.Error("the lock is taken after its time")
		}
	})
}

// TestCloseEndsWaits, and keeps no grant that is answered later.
func TestCloseEndsWaits(t *testing.T) {
	withServers(t, 3, func(t *testing.T, f []*fakeServer, locker func(redislock.Options) *Locker) {
		l := locker(redislock.Options{})
		_, held := acquire(t, locker(redislock.Options{}), t.Context())
		failed := make(chan error, 3)
		for range 2 { // one that asks, and one that waits for its turn
			go func() {
				_, _, err := l.Acquire(t.Context(), "k")
				failed <- err
			}()
		}
		synctest.Wait()
		begun := time.Now()
		if err := l.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
		for range 2 {
			if err := <-failed; !errors.Is(err, redislock.ErrClosed) || time.Since(begun) > time.Nanosecond {
				t.Errorf("Acquire = %v after %s, want ErrClosed at once", err, time.Since(begun))
			}
		}
		release(t, held)

		l = locker(redislock.Options{})
		for _, s := range f {
			s.set(func() {
				s.before = func(kind string) {
					if kind == "set" {
						time.Sleep(time.Second)
					}
				}
			})
		}
		go func() {
			_, _, err := l.Acquire(t.Context(), "k")
			failed <- err
		}()
		synctest.Wait()
		if err := l.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := <-failed; !errors.Is(err, redislock.ErrClosed) {
			t.Errorf("Acquire = %v, want ErrClosed", err)
		}
		time.Sleep(time.Second)
		for i, s := range f {
			if s.value() != "" {
				t.Errorf("server %d has the lock after Close", i)
			}
		}
	})
}
