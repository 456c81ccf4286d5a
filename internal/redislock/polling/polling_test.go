package polling

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"stocklock/internal/redislock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testServer is a redis-server of the test's own.
type testServer struct {
	addr string
	cmd  *exec.Cmd
}

func startServer() (*testServer, error) {
	dir, err := os.MkdirTemp("", "polling-*")
	if err != nil {
		return nil, err
	}
	s := &testServer{addr: filepath.Join(dir, "socket")} // a port could be another server's
	s.cmd = exec.Command("redis-server", "--port", "0", "--unixsocket", s.addr, "--save", "", "--appendonly", "no")
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("these tests need a redis-server: %w", err)
	}
	client := redis.NewClient(&redis.Options{Addr: s.addr, MaxRetries: -1})
	defer client.Close()
	for range 1000 {
		if err = client.Ping(context.Background()).Err(); err == nil {
			return s, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.stop()
	return nil, err
}

func (s *testServer) stop() {
	s.cmd.Process.Kill()
	s.cmd.Wait()
	os.RemoveAll(filepath.Dir(s.addr))
}

func newServer(t *testing.T) *testServer {
	t.Helper()
	s, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	return s
}

func newClient(t *testing.T, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	t.Cleanup(func() { client.Close() })
	return client
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func acquire(t *testing.T, l *Locker, ctx context.Context, key string) (context.Context, *redislock.Lease) {
	t.Helper()
	held, lease, err := l.Acquire(ctx, key)
	if err != nil {
		t.Fatalf("Acquire(%q): %v", key, err)
	}
	return held, lease
}

func release(t *testing.T, lease *redislock.Lease) {
	t.Helper()
	if err := lease.Release(); err != nil {
		t.Errorf("Release: %v", err)
	}
}

// lostWithin wants a held context to end with ErrLost before d is over.
func lostWithin(t *testing.T, held context.Context, d time.Duration) {
	t.Helper()
	select {
	case <-held.Done():
	case <-time.After(d):
		t.Fatalf("the hold did not end within %s", d)
	}
	if cause := context.Cause(held); !errors.Is(cause, redislock.ErrLost) {
		t.Errorf("the hold ended with %v, want ErrLost", cause)
	}
}

func TestQuorum(t *testing.T) {
	if testing.Short() {
		t.Skip("-short leaves out what needs Redis servers; make test runs it")
	}
	var servers []*testServer
	for range 3 {
		s, err := startServer()
		if err != nil {
			t.Fatal(err)
		}
		servers = append(servers, s)
	}
	stopped := map[int]bool{}
	stop := func(i int) {
		if !stopped[i] {
			stopped[i] = true
			servers[i].stop()
		}
	}
	t.Cleanup(func() {
		for i := range servers {
			stop(i)
		}
	})
	locker := func() *Locker {
		var nodes []*redis.Client
		for _, s := range servers {
			nodes = append(nodes, newClient(t, s.addr))
		}
		q := NewQuorum(nodes, Options{Lease: 2 * time.Second, Wait: 300 * time.Millisecond})
		t.Cleanup(func() { q.Close(context.Background()) })
		return q
	}
	a, b := locker(), locker()
	held, lease := acquire(t, a, within(t), t.Name())
	if _, _, err := b.Acquire(t.Context(), t.Name()); !errors.Is(err, redislock.ErrNotAcquired) {
		t.Errorf("a second holder got %v, want redislock.ErrNotAcquired", err)
	}
	if again, inner, err := a.Acquire(held, t.Name()); again != held || err != nil {
		t.Errorf("re-entry: %v", err)
	} else {
		release(t, inner)
	}
	release(t, lease)
	stop(0)
	held, _ = acquire(t, b, within(t), t.Name())
	time.Sleep(3 * time.Second)
	if held.Err() != nil {
		t.Errorf("with one of three gone, a renewed lock was lost: %v", context.Cause(held))
	}
	stop(1)
	lostWithin(t, held, 10*time.Second)
	if _, _, err := a.Acquire(t.Context(), t.Name()+"x"); err == nil {
		t.Error("got a lock from one of three")
	}
}

func TestAForeignValueIsLeftAlone(t *testing.T) {
	if testing.Short() {
		t.Skip("-short leaves out what needs Redis servers; make test runs it")
	}
	client := newClient(t, newServer(t).addr)
	l := NewQuorum([]*redis.Client{client}, Options{Lease: 500 * time.Millisecond})
	t.Cleanup(func() { l.Close(context.Background()) })
	held, lease := acquire(t, l, within(t), t.Name())
	client.Set(t.Context(), t.Name(), "somebody else", 0)
	lostWithin(t, held, 10*time.Second)
	if err := lease.Release(); !errors.Is(err, redislock.ErrNotHeld) {
		t.Errorf("Release = %v, want redislock.ErrNotHeld", err)
	}
	if got := client.Get(t.Context(), t.Name()).Val(); got != "somebody else" {
		t.Errorf("the lock is %q, want somebody else's left alone", got)
	}
}

// slowStore grants each lock a second after it was asked for. It counts what was dropped.
type slowStore struct{ dropped atomic.Int32 }

func (s *slowStore) set(_ context.Context, _, _ string, lease time.Duration) (time.Duration, bool, error) {
	time.Sleep(time.Second)
	return lease, true, nil
}

func (s *slowStore) extend(_ context.Context, _, _ string, lease time.Duration) (time.Duration, bool, error) {
	return lease, true, nil
}

func (s *slowStore) drop(context.Context, string, string) (bool, error) {
	s.dropped.Add(1)
	return true, nil
}

// TestCloseBeforeTheAnswer: a grant that comes after Close began is not kept, and Close waits for
// that.
func TestCloseBeforeTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{}
		l := newLocker(store, Options{}.withDefaults())
		closed := make(chan struct{})
		time.AfterFunc(time.Second/2, func() {
			l.Close(context.Background())
			close(closed)
		})
		if held, _, err := l.Acquire(t.Context(), "k"); err == nil {
			<-held.Done()
		}
		<-closed
		if n := store.dropped.Load(); n != 1 {
			t.Errorf("dropped %d times, want once before Close has returned", n)
		}
	})
}

// TestAGrantAfterItsLeaseIsNoHold: the answer takes a second, and the lease half of that.
func TestAGrantAfterItsLeaseIsNoHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{}
		l := newLocker(store, Options{Lease: time.Second / 2, Wait: 5 * time.Second}.withDefaults())
		if _, _, err := l.Acquire(t.Context(), "k"); !errors.Is(err, redislock.ErrNotAcquired) {
			t.Errorf("Acquire = %v, want ErrNotAcquired", err)
		}
		l.Close(context.Background())
		if store.dropped.Load() == 0 {
			t.Error("what was set stays until its lease is over")
		}
	})
}

// TestReentryAfterTheRelease: a context that outlives its hold gets a new hold, as of redislock.Locker.
func TestReentryAfterTheRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocker(&slowStore{}, Options{}.withDefaults())
		held, lease := acquire(t, l, t.Context(), "k")
		outlives := context.WithoutCancel(held)
		again, inner := acquire(t, l, outlives, "k")
		if again != outlives {
			t.Error("a re-entry has a context of its own")
		}
		release(t, inner)
		release(t, lease)
		held, lease = acquire(t, l, outlives, "k")
		if !lease.Valid() {
			t.Error("the new hold is not valid")
		}
		l.Close(context.Background())
		if _, _, err := l.Acquire(held, "k"); !errors.Is(err, redislock.ErrLost) {
			t.Errorf("Acquire under a lost hold = %v, want ErrLost", err)
		}
	})
}
