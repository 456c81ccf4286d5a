package polling

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"strconv"
	"testing"
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
	port := strconv.Itoa(20000 + rand.IntN(10000))
	s := &testServer{addr: net.JoinHostPort("127.0.0.1", port), cmd: exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("these tests need a redis-server: %w", err)
	}
	client := redis.NewClient(&redis.Options{Addr: s.addr, MaxRetries: -1})
	defer client.Close()
	var err error
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
		t.Skip("needs Redis servers")
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
		var nodes []redis.Scripter
		for _, s := range servers {
			client := newClient(t, s.addr)
			nodes = append(nodes, client)
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

func TestWithoutLua(t *testing.T) {
	if testing.Short() {
		t.Skip("needs Redis servers")
	}
	client := newClient(t, newServer(t).addr)
	client.Del(t.Context(), t.Name())
	l := NewWithoutLua(client, Options{Lease: 500 * time.Millisecond, Wait: 200 * time.Millisecond})
	t.Cleanup(func() { l.Close(context.Background()) })
	held, lease := acquire(t, l, within(t), t.Name())
	time.Sleep(time.Second)
	if held.Err() != nil {
		t.Fatalf("a renewed lock was lost: %v", context.Cause(held))
	}
	other := NewWithoutLua(client, Options{Lease: 500 * time.Millisecond, Wait: 200 * time.Millisecond})
	t.Cleanup(func() { other.Close(context.Background()) })
	if _, _, err := other.Acquire(t.Context(), t.Name()); !errors.Is(err, redislock.ErrNotAcquired) {
		t.Errorf("a second holder got %v, want redislock.ErrNotAcquired", err)
	}
	client.Set(t.Context(), t.Name(), "somebody else", 0)
	lostWithin(t, held, 10*time.Second)
	if err := lease.Release(); !errors.Is(err, redislock.ErrNotHeld) {
		t.Errorf("Release = %v, want redislock.ErrNotHeld", err)
	}
	if got := client.Get(t.Context(), t.Name()).Val(); got != "somebody else" {
		t.Errorf("the lock is %q, want somebody else's left alone", got)
	}
}
