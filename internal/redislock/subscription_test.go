package redislock

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// apart has its subscriptions on another way than its requests, or later.
type apart struct {
	*redis.Client
	pushes *redis.Client
	begin  <-chan struct{} // closed when they may begin
}

func (c apart) Subscribe(ctx context.Context, channels ...string) *redis.PubSub {
	<-c.begin
	return c.pushes.Subscribe(ctx, channels...)
}

// TestAGrantBeforeTheSubscriptionIsFound: a waiter queues before it listens, and asks once it does.
// With the long lease no other heartbeat finds the grant in time.
func TestAGrantBeforeTheSubscriptionIsFound(t *testing.T) {
	client, _ := newClient(t, shared.addr)
	begin := make(chan struct{})
	waiter := closing(t, New(apart{client, client, begin}, Options{Lease: 2 * time.Minute}))
	holder, _ := newLocker(t, Options{Lease: 2 * time.Minute})
	_, lease := acquire(t, holder, within(t), t.Name())
	got := queues(t, waiter, t.Name(), 1)
	release(t, lease)
	close(begin)
	release(t, soon(t, got, 10*time.Second))
}

// pushes is a fake Redis with subscriptions, each of them a connection in virtual time.
type pushes struct {
	*fakeRedis
	client *redis.Client

	mu       sync.Mutex
	commands map[string]int
	dials    []time.Time
	refuse   int             // so many dials
	hangUp   bool            // after the subscription, or a ping
	silent   bool            // pings have no answer
	mute     bool            // nothing has
	wait     <-chan struct{} // before the answer to a subscription
	over     int             // connections
}

func (p *pushes) Subscribe(ctx context.Context, channels ...string) *redis.PubSub {
	return p.client.Subscribe(ctx, channels...)
}

// withPushes runs a test with a Locker on it.
func withPushes(t *testing.T, test func(t *testing.T, p *pushes, l *Locker)) {
	synctest.Test(t, func(t *testing.T) {
		p := &pushes{fakeRedis: newFakeRedis(t), commands: map[string]int{}}
		// With a name as its address, the client asks a resolver, which is not of this bubble.
		p.client = redis.NewClient(&redis.Options{Protocol: 2, Addr: "127.0.0.1:6379", DialerRetries: 1, Dialer: func(context.Context, string, string) (net.Conn, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.dials = append(p.dials, time.Now()); len(p.dials) <= p.refuse {
				return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
			}
			here, there := net.Pipe()
			go p.serve(there)
			return here, nil
		}})
		l := New(p, Options{Lease: fakeLease})
		test(t, p, l)
		closes(t, l)
		p.client.Close()
	})
}

// serve is a Redis that knows two commands.
func (p *pushes) serve(conn net.Conn) {
	defer p.set(func() { p.over++ })
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
		p.mu.Lock()
		p.commands[args[0]]++
		silent, hangUp, mute, wait := p.silent, p.hangUp, p.mute, p.wait
		p.mu.Unlock()
		switch {
		case mute:
		case args[0] == "subscribe" && !hangUp:
			if wait != nil {
				<-wait
			}
			fmt.Fprintf(conn, "*3\r\n$9\r\nsubscribe\r\n$%d\r\n%s\r\n:1\r\n", len(args[1]), args[1])
		case hangUp && (args[0] == "subscribe" || args[0] == "ping"):
			return
		case args[0] == "ping" && !silent:
			fmt.Fprint(conn, "*2\r\n$4\r\npong\r\n$0\r\n\r\n")
		case args[0] != "ping":
			fmt.Fprint(conn, "-ERR unknown command\r\n")
		}
	}
}

func (p *pushes) set(what func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	what()
}

func (p *pushes) sent(command string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.commands[command]
}

// TestASubscriptionIsKept as long as its pings are answered. One that is silent is opened again, and so is one
// that has no connection for a moment, however old the Locker is.
func TestASubscriptionIsKept(t *testing.T) {
	withPushes(t, func(t *testing.T, p *pushes, l *Locker) {
		l.base = l.base.Add(-time.Hour)
		p.refuse = 3
		listens(t, l)
		if time.Sleep(10 * silence); p.sent("subscribe") != 1 || p.sent("ping") < 3 || len(p.dials) != 4 {
			t.Errorf("in a silence, Redis was sent %v by %d dials", p.commands, len(p.dials))
		}
		p.set(func() { p.silent = true })
		if time.Sleep(3 * silence); p.sent("subscribe") < 2 {
			t.Error("the Locker goes on to listen to a connection that is silent")
		}
	})
}

// TestReconnectsBackOff where a server accepts and hangs up, up to a second, with jitter. After a connection that has
// worked they begin anew.
func TestReconnectsBackOff(t *testing.T) {
	withPushes(t, func(t *testing.T, p *pushes, l *Locker) {
		listens(t, l)
		p.set(func() { p.hangUp, p.silent, p.dials = true, true, nil })
		time.Sleep(time.Minute)
		p.set(func() {
			last := p.dials[len(p.dials)-1].Sub(p.dials[len(p.dials)-2])
			if n := len(p.dials); n < 30 || n > 120 || last < time.Second/2 || last > 2*time.Second {
				t.Errorf("%d connections in a minute, the last ones %s apart", n, last)
			}
			p.hangUp, p.silent = false, false
		})
		time.Sleep(2 * silence)
		p.set(func() { p.hangUp, p.dials = true, nil })
		time.Sleep(2 * silence)
		p.set(func() {
			if first := p.dials[1].Sub(p.dials[0]); first > 100*time.Millisecond {
				t.Errorf("the first connections are %s apart", first)
			}
		})
	})
}
