package redislock

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// apart has its subscriptions on another way than its requests.
type apart struct {
	*redis.Client
	pushes *redis.Client
}

func (c apart) Subscribe(ctx context.Context, channels ...string) *redis.PubSub {
	return c.pushes.Subscribe(ctx, channels...)
}

// TestSilentSubscriptionIsOpenedAgain has the connection with the pushes swallow everything, and not
// break. With the long lease no heartbeat finds the grant in time.
func TestSilentSubscriptionIsOpenedAgain(t *testing.T) {
	t.Parallel()
	w := newWire(t, shared.addr)
	requests, _ := newClient(t, shared.addr)
	pushes := defaults(t, w.addr, time.Second)
	waiter := New(apart{requests, pushes}, Options{Lease: 2 * time.Minute})
	t.Cleanup(func() { waiter.Close(context.Background()) })
	holder, _ := newLocker(t, Options{Lease: 2 * time.Minute})
	_, lease := acquire(t, holder, within(t), t.Name())
	got := make(chan error, 1)
	go func() {
		_, lease, err := waiter.Acquire(t.Context(), t.Name())
		if err == nil {
			err = lease.Release()
		}
		got <- err
	}()
	eventually(t, "it waits, and listens", func() bool {
		return waiter.hears() && requests.ZCard(t.Context(), Keys("", t.Name()).Queue).Val() == 1
	})
	connections := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.conns)
	}
	before := connections()
	w.cut()
	release(t, lease)
	for begun := time.Now(); connections() == before; time.Sleep(10 * time.Millisecond) {
		if time.Since(begun) > 10*silence {
			t.Fatal("the Locker goes on to listen to a connection that is silent")
		}
	}
	w.cutUp.Store(false)
	w.cutDown.Store(false)
	select {
	case err := <-got:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Error("the grant that was pushed into the silence was not found")
	}
}

// late has its subscriptions begin on request.
type late struct {
	*redis.Client
	begin chan struct{}
}

func (c late) Subscribe(ctx context.Context, channels ...string) *redis.PubSub {
	<-c.begin
	return c.Client.Subscribe(ctx, channels...)
}

// TestASubscriptionIsTriedAgain where it has no connection for a moment, however old the Locker is.
func TestASubscriptionIsTriedAgain(t *testing.T) {
	requests, _ := newClient(t, shared.addr)
	var dials atomic.Int32
	pushes := redis.NewClient(&redis.Options{Addr: shared.addr, DialerRetries: 1, Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if dials.Add(1) <= 3 {
			return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		}
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}})
	t.Cleanup(func() { pushes.Close() })
	waiter := New(apart{requests, pushes}, Options{Lease: 2 * time.Minute})
	t.Cleanup(func() { waiter.Close(context.Background()) })
	waiter.base = waiter.base.Add(-time.Hour)
	holder, _ := newLocker(t, Options{})
	_, lease := acquire(t, holder, within(t), t.Name())
	got := make(chan error, 1)
	go func() {
		_, lease, err := waiter.Acquire(within(t), t.Name())
		if err == nil {
			err = lease.Release()
		}
		got <- err
	}()
	eventually(t, "it listens, or gives up", func() bool { return waiter.hears() || len(got) > 0 })
	release(t, lease)
	if err := <-got; err != nil || dials.Load() <= 3 {
		t.Errorf("after %d dials: %v", dials.Load(), err)
	}
}

// TestAGrantBeforeTheSubscriptionIsFound: a waiter queues before it listens, and asks once it does.
// With the long lease no other heartbeat finds the grant in time.
func TestAGrantBeforeTheSubscriptionIsFound(t *testing.T) {
	client, _ := newClient(t, shared.addr)
	begin := make(chan struct{})
	waiter := closing(t, New(late{client, begin}, Options{Lease: 2 * time.Minute}))
	holder, _ := newLocker(t, Options{Lease: 2 * time.Minute})
	_, lease := acquire(t, holder, within(t), t.Name())
	got := make(chan *Lease, 1)
	go func() {
		_, lease, _ := waiter.Acquire(within(t), t.Name())
		got <- lease
	}()
	eventually(t, "it waits", func() bool { return client.ZCard(t.Context(), Keys("", t.Name()).Queue).Val() == 1 })
	release(t, lease)
	close(begin)
	begun := time.Now()
	if next := <-got; next == nil || time.Since(begun) > 10*time.Second {
		t.Fatalf("the waiter got %v after %s", next, time.Since(begun))
	} else {
		release(t, next)
	}
}

// pushing has its subscriptions at a client of go-redis.
type pushing struct {
	*fakeRedis
	pushes *redis.Client
}

func (c pushing) Subscribe(ctx context.Context, channels ...string) *redis.PubSub {
	return c.pushes.Subscribe(ctx, channels...)
}

// TestAQuietSubscriptionIsKept, as long as its pings are answered.
func TestAQuietSubscriptionIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		commands := map[string]int{}
		serve := func(conn net.Conn) { // as a Redis that knows two commands
			defer conn.Close()
			r := bufio.NewReader(conn)
			for {
				var count, length int
				if _, err := fmt.Fscanf(r, "*%d\r\n", &count); err != nil {
					return
				}
				args := make([]string, count)
				for i := range args {
					fmt.Fscanf(r, "$%d\r\n", &length)
					text := make([]byte, length+2)
					io.ReadFull(r, text)
					args[i] = string(text[:length])
				}
				mu.Lock()
				commands[args[0]]++
				mu.Unlock()
				switch args[0] {
				case "subscribe":
					fmt.Fprintf(conn, "*3\r\n$9\r\nsubscribe\r\n$%d\r\n%s\r\n:1\r\n", len(args[1]), args[1])
				case "ping":
					fmt.Fprint(conn, "*2\r\n$4\r\npong\r\n$0\r\n\r\n")
				default:
					fmt.Fprint(conn, "-ERR unknown command\r\n")
				}
			}
		}
		// With a name as its address, the client asks a resolver, which is not of this bubble.
		pushes := redis.NewClient(&redis.Options{Protocol: 2, Addr: "127.0.0.1:6379", Dialer: func(context.Context, string, string) (net.Conn, error) {
			here, there := net.Pipe()
			go serve(there)
			return here, nil
		}})
		l := New(pushing{newFakeRedis(t), pushes}, Options{})
		listens(t, l)
		time.Sleep(10 * silence)
		mu.Lock()
		if commands["subscribe"] != 1 || commands["ping"] < 3 {
			t.Errorf("in a silence, Redis was sent %v", commands)
		}
		mu.Unlock()
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		pushes.Close()
	})
}
