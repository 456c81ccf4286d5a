package redislock

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"go.uber.org/goleak"
)

// The tests of this package start their own redis-server, and travel with the
// folder: they need nothing but go-redis, goleak, and that program on the PATH.

func TestMain(m *testing.M) {
	server, err := startServer(nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, "redislock: these tests need a redis-server (apt-get install redis-server, brew install redis):", err)
		os.Exit(1)
	}
	shared = server
	flag.Set("test.parallel", "8") // most tests wait, for a lease or for what goes through a wire. A flag -parallel comes later
	redis.SetLogger(silent{})      // the tests break connections by the dozen
	// The client goes on trying to connect for a second.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"), goleak.Cleanup(func(code int) {
		server.stop()
		os.Exit(code)
	}))
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// shared is the server that tests use unless they restart it.
var shared *testServer

// sees is a hook of a client: what it is about to send.
type sees func(cmds ...redis.Cmder)

func (see sees) DialHook(next redis.DialHook) redis.DialHook { return next }

func (see sees) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { see(cmd); return next(ctx, cmd) }
}

func (see sees) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { see(cmds...); return next(ctx, cmds) }
}

// counter counts the requests that a client sends.
type counter struct{ n atomic.Int64 }

func (c *counter) count(cmds ...redis.Cmder) {
	for _, cmd := range cmds {
		if cmd.Name() == "evalsha" || cmd.Name() == "eval" {
			c.n.Add(1)
		}
	}
}

// peer is another process as far as Redis can see, without a Locker.
type peer struct {
	server
	lease time.Duration
}

func newPeer(client Client, lease time.Duration) peer { return peer{newServer(client, ""), lease} }

func (k KeySet) all() []string { return []string{k.Lock, k.Queue, k.Waiters, k.Epoch} }

// lockOn is a lock that no Locker knows of.
func lockOn(key string) *lock { return newLock(tagged(key)) }

// send sends a script with the lease, and with what comes after that.
func (p peer) send(ctx context.Context, sc *script, n *lock, attempt uint64, more ...any) (reply, error) {
	return p.do(ctx, sc, n, attempt, append([]any{p.lease.Milliseconds()}, more...)...)
}

// holder is who has a lock in Redis.
type holder struct {
	owner, attempt string
	epoch          int64
}

// holderIn reads it. It is zero if nobody has the lock.
func holderIn(t *testing.T, client *redis.Client, lock string) (h holder) {
	t.Helper()
	value, err := client.Get(t.Context(), lock).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	fmt.Sscan(value, &h.owner, &h.attempt, &h.epoch)
	return h
}

// newClient connects to addr, like a service would.
func newClient(t testing.TB, addr string, db ...int) (*redis.Client, *counter) {
	t.Helper()
	needsServer(t)
	client := redis.NewClient(&redis.Options{
		Addr: addr, DB: append(db, 0)[0], MaxRetries: -1, PoolSize: 64, ContextTimeoutEnabled: true,
		DialTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, // for a busy machine
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	count := &counter{}
	client.AddHook(sees(count.count))
	return toClose(t, client), count
}

// newLocker makes a Locker with a client of its own: another process, as far as
// Redis can see.
func newLocker(t testing.TB, o Options) (*Locker, *counter) {
	t.Helper()
	client, count := newClient(t, shared.addr)
	return closing(t, New(client, o)), count
}

// toClose has a client, or what it has opened, closed at the end of a test.
func toClose[C io.Closer](t testing.TB, c C) C {
	t.Cleanup(func() { c.Close() })
	return c
}

// closing has a Locker closed at the end of a test. What the test still holds is left to its lease.
func closing[L Locking](t testing.TB, l L) L {
	t.Cleanup(func() { closes(t, l) })
	return l
}

func closes(t testing.TB, l Locking) {
	t.Helper()
	_ = l.Close(over())
	if err := l.Close(context.Background()); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// wire is a TCP forwarder that can go silent.
type wire struct {
	addr     string
	upstream string
	listener net.Listener
	cutUp    atomic.Bool // requests vanish
	cutDown  atomic.Bool // answers vanish
	lost     atomic.Int64
	mu       sync.Mutex
	conns    []net.Conn
	done     sync.WaitGroup
}

func newWire(t testing.TB, upstream string) *wire {
	t.Helper()
	needsServer(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	w := &wire{addr: listener.Addr().String(), upstream: upstream, listener: listener}
	w.done.Go(w.accept)
	t.Cleanup(func() {
		listener.Close()
		w.breaks()
		w.done.Wait()
	})
	return w
}

func (w *wire) accept() {
	for {
		near, err := w.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", w.upstream)
		if err != nil {
			near.Close()
			continue
		}
		w.mu.Lock()
		w.conns = append(w.conns, near, far)
		w.mu.Unlock()
		w.done.Go(func() { w.pipe(far, near, &w.cutUp) })
		w.done.Go(func() { w.pipe(near, far, &w.cutDown) })
	}
}

// pipe copies until a side closes; what comes while it is cut is lost.
func (w *wire) pipe(to, from net.Conn, cut *atomic.Bool) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if cut.Load() {
			w.lost.Add(1)
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (w *wire) set(cut bool) {
	w.cutUp.Store(cut)
	w.cutDown.Store(cut)
}

// breaks ends all connections.
func (w *wire) breaks() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		c.Close()
	}
}

// must fails a test that cannot go on.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// acquire fails the test when the lock is not to be had.
func acquire(t testing.TB, l Locking, ctx context.Context, key string) (context.Context, *Lease) {
	t.Helper()
	held, lease, err := l.Acquire(ctx, key)
	if err != nil {
		t.Fatalf("Acquire(%q): %v", key, err)
	}
	return held, lease
}

// free wants the lock with the name of the test to be had.
func free(t testing.TB, l Locking) {
	t.Helper()
	_, lease := acquire(t, l, within(t), t.Name())
	release(t, lease)
}

func release(t testing.TB, lease *Lease) {
	t.Helper()
	if err := lease.Release(); err != nil {
		t.Errorf("Release: %v", err)
	}
}

// asks has a goroutine acquire a lock, and returns what it gets: nil after an error.
func asks(t testing.TB, ctx context.Context, l Locking, key string) <-chan *Lease {
	got := make(chan *Lease, 1)
	go func() {
		_, lease, err := l.Acquire(ctx, key)
		if err != nil && ctx.Err() == nil {
			t.Errorf("Acquire(%q): %v", key, err)
		}
		got <- lease
	}()
	return got
}

// queues is asks, and waits until the process is the nth in Redis's queue.
func queues(t testing.TB, l Locking, key string, nth int64) <-chan *Lease {
	t.Helper()
	got := asks(t, within(t), l, key)
	waitFor(t, shared.addr, key, nth)
	return got
}

// waitFor waits until so many processes are in Redis's queue.
func waitFor(t testing.TB, addr, key string, processes int64) {
	t.Helper()
	client, _ := newClient(t, addr)
	eventually(t, "so many wait", func() bool { return client.ZCard(t.Context(), Keys("", key).Queue).Val() == processes })
}

// soon takes what somebody waits for: it must come within d.
func soon(t testing.TB, got <-chan *Lease, d time.Duration) *Lease {
	t.Helper()
	begun := time.Now()
	lease := <-got
	if took := time.Since(begun); lease == nil || took > d {
		t.Fatalf("the waiter got %v after %s, want the lock within %s", lease, took, d)
	}
	return lease
}

// under reads what Locker.mu guards.
func under[T any](l *Locker, read func() T) T {
	l.mu.Lock()
	defer l.unlock()
	return read()
}

// waitersOf is how many goroutines want a lock.
func (l *Locker) waitersOf(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.locks[tagged(key)]; n != nil {
		return n.waiters.Len()
	}
	return 0
}

// eventually waits for something that must come, generously: the machine may be busy.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for until := time.Now().Add(60 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("after a minute, still not: %s", what)
		}
	}
}

// renew sends a renewal before its time, and says whether the lock is held after it.
func renew(lease *Lease) bool {
	h := lease.hold
	l, n := h.locker, h.lock
	node := under(l, func() string { return l.server.node(n) })
	l.renew(node, []redis.Cmder{l.server.command(renewScript, n, h.attempt, h.lease.Milliseconds())}, l.now(), l.now()+5*time.Second)
	return h.failed.Load() == nil && h.loss() == nil && !h.isReleased()
}

// isRenewed waits until holds are renewed.
func isRenewed(t testing.TB, leases ...*Lease) {
	t.Helper()
	was := map[*Lease]time.Time{}
	for _, lease := range leases {
		was[lease] = lease.Deadline()
	}
	for _, lease := range leases {
		eventually(t, "a hold is renewed", func() bool { return lease.Deadline().After(was[lease]) || !lease.Valid() })
		if !lease.Valid() {
			t.Errorf("%q was lost: %v", lease.Key(), lease.hold.loss())
		}
	}
}

// queued is how many renewals are due, and pipelines under way.
func (l *Locker) queued() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for node, due := range l.due {
		n += len(due) + len(l.underWay[node])
	}
	return n
}

// listens has a Locker subscribe, as if somebody waited.
func listens(t testing.TB, l *Locker) {
	t.Helper()
	must(t, under(l, l.subscribeLocked))
	eventually(t, "the Locker listens", l.hears)
}

// hears says whether a Locker's subscription is confirmed.
func (l *Locker) hears() bool {
	return under(l, func() bool { return l.subscription != nil && l.subscription.since != 0 })
}

// within bounds a wait that must end, generously: the machine may be busy.
func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}
