package redislock

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// refuser answers the lock's requests, or another command, with an error of Redis or a panic.
type refuser struct {
	command string // empty for the lock's
	error   atomic.Pointer[string]
	asked   atomic.Int64
	panic   bool
	then    atomic.Pointer[func(asked int64)] // called after each refusal
}

func (r *refuser) means(cmd redis.Cmder) bool {
	return cmd.Name() == r.command || r.command == "" && slices.Contains([]string{"evalsha", "eval", "set"}, cmd.Name())
}

func (r *refuser) DialHook(next redis.DialHook) redis.DialHook { return next }
func (r *refuser) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (r *refuser) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if text := r.error.Load(); text != nil && r.means(cmd) {
			r.asked.Add(1)
			_ = cmd.Args() // what is refused was read
			if r.panic {
				r.error.Store(nil)
				panic(*text)
			}
			if then := r.then.Load(); then != nil {
				(*then)(r.asked.Load())
			}
			cmd.SetErr(redisError(*text))
			return redisError(*text)
		}
		return next(ctx, cmd)
	}
}

type redisError string

func (e redisError) Error() string { return string(e) }
func (redisError) RedisError()     {}

func (r *refuser) says(text string) { r.error.Store(&text) }

// TestRefusalsAreDefinite: nothing was carried out, so there is nothing to cancel. Those that will
// pass are asked again, for as long as the caller waits.
func TestRefusalsAreDefinite(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"OOM command not allowed when used memory > 'maxmemory'.", "MISCONF Errors writing to the AOF file", "NOREPLICAS Not enough good replicas to write."} {
		client, _ := newClient(t, shared.addr)
		r := &refuser{}
		client.AddHook(r)
		l := closing(t, New(client, Options{}))
		r.says(text)
		_, _, err := l.Acquire(within(t), t.Name())
		if err == nil || !strings.Contains(err.Error(), "nothing was done: "+text[:3]) || errors.Is(err, ErrNotAcquired) {
			t.Errorf("Acquire = %v, want that it was refused", err)
		}
		time.Sleep(50 * time.Millisecond)
		if n := r.asked.Load(); n != 1 {
			t.Errorf("%d requests, want the one that was refused, and nothing cancelled", n)
		}
	}
	for _, text := range []string{"TRYAGAIN Multiple keys request during rehashing of slot", "CLUSTERDOWN The cluster is down", "LOADING Redis is loading the dataset in memory",
		"MASTERDOWN Link with MASTER is down", "READONLY You can't write against a read only replica.",
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."} {
		client := redis.NewClient(&redis.Options{Addr: shared.addr, MaxRetries: -1})
		defer client.Close()
		r := &refuser{}
		client.AddHook(r)
		l := closing(t, New(client, Options{}))
		ctx, cancel := context.WithCancel(t.Context())
		cancelAtSecond := func(asked int64) {
			if asked == 2 {
				cancel()
			}
		}
		r.then.Store(&cancelAtSecond)
		r.says(text)
		_, _, err := l.Acquire(ctx, t.Name())
		if !errors.Is(err, ErrNotAcquired) || !strings.Contains(err.Error(), text) || r.asked.Load() < 2 {
			t.Errorf("Acquire = %v after %d requests, want ErrNotAcquired with %q after several", err, r.asked.Load(), text)
		}
		if _, _, err := l.TryAcquire(t.Context(), t.Name()); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("TryAcquire = %v, want %q", err, text)
		}
		refuseTwice := func() {
			until := r.asked.Load() + 2
			pass := func(asked int64) {
				if asked == until {
					r.error.Store(nil)
				}
			}
			r.then.Store(&pass)
			r.says(text)
		}
		refuseTwice()
		_, lease := acquire(t, l, within(t), t.Name())
		refuseTwice()
		release(t, lease)
	}
}

// TestNoRightToSubscribeIsSaid: and nobody goes on trying.
func TestNoRightToSubscribeIsSaid(t *testing.T) {
	t.Parallel()
	server, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.stop)
	admin, _ := newClient(t, server.addr)
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "service", "on", ">pw", "~*", "+@all", "resetchannels").Err(); err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: server.addr, Username: "service", Password: "pw"})
	t.Cleanup(func() { client.Close() })
	holder, _ := newLockerAt(t, server.addr, Options{})
	_, lease := acquire(t, holder, within(t), t.Name())
	l := closing(t, New(client, Options{}))
	begun := time.Now()
	_, _, err = l.Acquire(within(t), t.Name())
	if err == nil || !strings.Contains(err.Error(), "NOPERM") || errors.Is(err, ErrNotAcquired) {
		t.Errorf("Acquire = %v, want NOPERM", err)
	}
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("it took %s to say so", took)
	}
	connections := func() string { return admin.InfoMap(t.Context(), "stats").Item("Stats", "total_connections_received") }
	before := connections()
	time.Sleep(time.Second)
	if now := connections(); now != before {
		t.Errorf("connections go on being made: %s, %s", before, now)
	}
	release(t, lease)
	_, mine := acquire(t, l, within(t), t.Name()) // what need not wait can be had
	// A goroutine beside it could wait without Redis. It would not hear that other processes wait, too.
	for range 2 { // the second one at once: the subscription is not tried again
		if _, _, err := l.Acquire(within(t), t.Name()); err == nil || !strings.Contains(err.Error(), "NOPERM") {
			t.Errorf("Acquire beside a holder of this process = %v, want NOPERM", err)
		}
	}
	if !mine.Valid() {
		t.Error("the hold ended with the subscription")
	}
	release(t, mine)
}

// TestNoRightEndsAGrantHalfWay: a script that may not clean up has given the lock and notified the
// waiter all the same. What it left does not take the lock later.
func TestNoRightEndsAGrantHalfWay(t *testing.T) {
	t.Parallel()
	server, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.stop)
	admin, _ := newClient(t, server.addr)
	for _, commands := range [][]string{{"zrem"}, {"hdel"}, {"zcard"}, {"zrem", "hdel"}} {
		user := strings.Join(commands, "+")
		rules := []any{"ACL", "SETUSER", user, "on", ">pw", "~*", "&*", "+@all"}
		for _, command := range commands {
			rules = append(rules, "-"+command)
		}
		if err := admin.Do(t.Context(), rules...).Err(); err != nil {
			t.Fatal(err)
		}
		client := redis.NewClient(&redis.Options{Addr: server.addr, Username: user, Password: "pw"})
		t.Cleanup(func() { client.Close() })
		n, holder, waiter := lockOn(user), newPeer(client, time.Minute), newPeer(admin, time.Minute)
		channel := admin.Subscribe(t.Context(), waiter.channel())
		t.Cleanup(func() { channel.Close() })
		if _, err := channel.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, p := range []peer{holder, waiter} {
			if _, err := p.acquire(t.Context(), n, 1, true, 0); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := holder.release(t.Context(), n, 1, 0, 0); err != nil {
			t.Errorf("release without the right to %s: %v", user, err)
		}
		if got := holderIn(t, admin, keysOf(n.name).Lock).owner; got != waiter.id {
			t.Errorf("without the right to %s, the lock is with %q, want the waiter", user, got)
		}
		if m, err := channel.ReceiveTimeout(t.Context(), 5*time.Second); err != nil {
			t.Errorf("without the right to %s, the waiter was sent %v: %v", user, m, err)
		}
		// Its place in the queue can be left. The lock is not given to the attempt that releases it.
		if _, err := waiter.release(t.Context(), n, 1, 0, 0); err != nil {
			t.Errorf("release by the waiter: %v", err)
		}
		if got := holderIn(t, admin, keysOf(n.name).Lock).owner; got != "" {
			t.Errorf("without the right to %s, the lock is with %q after its release", user, got)
		}
	}
}
