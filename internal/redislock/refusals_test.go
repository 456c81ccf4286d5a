package redislock

import (
	"cmp"
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
	for text, passes := range map[string]bool{
		"OOM command not allowed when used memory > 'maxmemory'.": false, "MISCONF Errors writing to the AOF file": false, "NOREPLICAS Not enough good replicas to write.": false,
		"TRYAGAIN Multiple keys request during rehashing of slot": true, "CLUSTERDOWN The cluster is down": true, "LOADING Redis is loading the dataset in memory": true,
		"MASTERDOWN Link with MASTER is down": true, "READONLY You can't write against a read only replica.": true, "BUSY Redis is busy running a script.": true,
	} {
		client := redis.NewClient(&redis.Options{Addr: shared.addr, MaxRetries: -1})
		defer client.Close()
		r := &refuser{}
		client.AddHook(r)
		l := closing(t, New(client, Options{}))
		ctx, cancel := context.WithCancel(within(t))
		atSecond := func(asked int64) {
			if asked == 2 {
				cancel()
			}
		}
		r.then.Store(&atSecond)
		r.says(text)
		_, _, err := l.Acquire(ctx, t.Name())
		if n := r.asked.Load(); err == nil || !strings.Contains(err.Error(), text) || !errors.Is(err, ErrUnavailable) || errors.Is(err, context.Canceled) != passes || strings.Contains(err.Error(), "nothing was done") == passes || (n == 1) == passes {
			t.Errorf("Acquire = %v after %d requests; it passes: %v", err, n, passes)
		}
		if _, _, err := l.TryAcquire(t.Context(), t.Name()); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("TryAcquire = %v, want %q", err, text)
		}
		if !passes {
			continue
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
	server, admin := ownServer(t)
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "service", "on", ">pw", "~*", "+@all", "resetchannels").Err(); err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: server.addr, Username: "service", Password: "pw"})
	t.Cleanup(func() { client.Close() })
	holder, _ := newLockerAt(t, server.addr, Options{})
	_, lease := acquire(t, holder, within(t), t.Name())
	l := closing(t, New(client, Options{}))
	begun := time.Now()
	if _, _, err := l.Acquire(within(t), t.Name()); err == nil || !strings.Contains(err.Error(), "nothing was done: SUBSCRIBE: NOPERM") || !errors.Is(err, ErrUnavailable) || time.Since(begun) > 2*time.Second {
		t.Errorf("Acquire = %v after %s, want NOPERM", err, time.Since(begun))
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
	server, admin := ownServer(t)
	for _, missing := range []string{"-zrem", "-hdel", "-zcard", "-zrem -hdel"} {
		rules := append(strings.Fields("ACL SETUSER user reset on >pw ~* &* +@all"), strings.Fields(missing)...)
		if err := admin.Do(t.Context(), anys(rules)...).Err(); err != nil {
			t.Fatal(err)
		}
		client := redis.NewClient(&redis.Options{Addr: server.addr, Username: "user", Password: "pw"})
		t.Cleanup(func() { client.Close() })
		n, holder, waiter := lockOn("without"+missing), newPeer(client, time.Minute), newPeer(admin, time.Minute)
		channel := admin.Subscribe(t.Context(), waiter.channel())
		t.Cleanup(func() { channel.Close() })
		_, err := channel.Receive(t.Context())
		for _, p := range []peer{holder, waiter} {
			_, refused := p.acquire(t.Context(), n, 1, true, 0)
			err = cmp.Or(err, refused)
		}
		_, refused := holder.release(t.Context(), n, 1, 0, 0)
		owner := holderIn(t, admin, keysOf(n.name).Lock).owner
		if m, silent := channel.ReceiveTimeout(t.Context(), 5*time.Second); cmp.Or(err, refused, silent) != nil || owner != waiter.id {
			t.Errorf("%s: the lock is with %q, and the waiter was sent %v: %v", missing, owner, m, cmp.Or(err, refused, silent))
		}
		// Its place in the queue can be left. The lock is not given to the attempt that releases it.
		_, err = waiter.release(t.Context(), n, 1, 0, 0)
		if owner := holderIn(t, admin, keysOf(n.name).Lock).owner; err != nil || owner != "" {
			t.Errorf("%s: after its release the lock is with %q: %v", missing, owner, err)
		}
	}
}

func anys(list []string) (all []any) {
	for _, s := range list {
		all = append(all, s)
	}
	return all
}
