package redislock

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// panicker is a hook that panics once at a request of the lock, or at another command.
type panicker struct {
	command string // empty for the lock's
	text    atomic.Pointer[string]
	asked   atomic.Int64
}

func (r *panicker) see(cmds ...redis.Cmder) {
	cmd := cmds[0]
	if len(cmds) > 1 || cmd.Name() != r.command && (r.command != "" || !slices.Contains([]string{"evalsha", "eval", "set"}, cmd.Name())) {
		return
	}
	if text := r.text.Swap(nil); text != nil {
		r.asked.Add(1)
		_ = cmd.Args() // it was read
		panic(*text)
	}
}

func (r *panicker) says(text string) { r.text.Store(&text) }

type redisError string

func (e redisError) Error() string { return string(e) }
func (redisError) RedisError()     {}

// TestRefusalsAreDefinite: nothing was carried out, so there is nothing to cancel. Those that will pass are asked
// again: see TestAWaitSaysWhyItHasNoSuccess.
func TestRefusalsAreDefinite(t *testing.T) {
	for text, want := range map[string][2]bool{
		"OOM command not allowed when used memory > 'maxmemory'.": {true, false}, "MISCONF Errors writing to the AOF file": {true, false}, "NOREPLICAS Not enough good replicas to write.": {true, false},
		"MOVED 1 127.0.0.1:1": {true, false}, "ASK 1 127.0.0.1:1": {true, false}, "NOAUTH Authentication required.": {true, false}, "NOSCRIPT No matching script.": {true, false},
		"TRYAGAIN Multiple keys request during rehashing of slot": {true, true}, "CLUSTERDOWN The cluster is down": {true, true}, "LOADING Redis is loading the dataset in memory": {true, true},
		"MASTERDOWN Link with MASTER is down": {true, true}, "READONLY You can't write against a read only replica.": {true, true}, "BUSY Redis is busy running a script.": {true, true},
		"NOPERM No permissions to access a key": {true, false}, "NOPERM User x has no permissions to run the 'zrem' command script: 1, on @user_script:2.": {false, false},
		"ERR something else": {false, false}, "BUSYGROUP of streams": {false, false},
	} {
		if got := [2]bool{definite(redisError(text)), passing(redisError(text))}; got != want {
			t.Errorf("%s: definite and passing are %v, want %v", text, got, want)
		}
	}
}

// TestNoRightToSubscribeIsSaid: and nobody goes on trying.
func TestNoRightToSubscribeIsSaid(t *testing.T) {
	t.Parallel()
	server, admin := ownServer(t)
	must(t, admin.Do(t.Context(), "ACL", "SETUSER", "service", "on", ">pw", "~*", "+@all", "resetchannels").Err())
	client := toClose(t, redis.NewClient(&redis.Options{Addr: server.addr, Username: "service", Password: "pw"}))
	_, lease := acquire(t, closing(t, New(admin, Options{})), within(t), t.Name())
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

// TestClientDoesNotSendAnAttemptAgain loses the answer to a request, and the connection. With retries at their
// default, go-redis sends other commands again then, and the lock's once.
func TestClientDoesNotSendAnAttemptAgain(t *testing.T) {
	t.Parallel()
	server, direct := ownServer(t)
	n := lockOn(t.Name())
	carriedOut := func() (calls int) {
		fmt.Sscanf(direct.InfoMap(t.Context(), "commandstats").Item("Commandstats", "cmdstat_evalsha"), "calls=%d", &calls)
		return calls
	}
	for name, c := range map[string]struct {
		commands int
		again    bool // sent again
		do       func(c *redis.Client) error
	}{
		"another client's script": {1, true, func(c *redis.Client) error {
			return c.EvalSha(t.Context(), cancelScript.sha.(string), keysOf(n.name).all(), "somebody 1", 1000).Err()
		}},
		"acquire": {1, false, func(c *redis.Client) error {
			_, err := newPeer(c, time.Second).send(t.Context(), acquireScript, n, 1, 0)
			return err
		}},
		"renewals in a pipeline": {2, false, func(c *redis.Client) error {
			s := newServer(c, "")
			a, b := s.command(renewScript, n, 1, 1000), s.command(renewScript, n, 2, 1000)
			s.send(t.Context(), a, b)
			return cmp.Or(a.Err(), b.Err())
		}},
	} {
		_, err := newPeer(direct, time.Second).send(t.Context(), cancelScript, n, 1) // Redis knows the script
		must(t, err)
		w := newWire(t, server.addr)
		client := defaults(t, w.addr, time.Minute)
		must(t, c.do(client)) // connects
		before := carriedOut()
		w.cutDown.Store(true)
		done := make(chan error, 1)
		go func() { done <- c.do(client) }()
		eventually(t, "the answer is lost", func() bool { return w.lost.Load() > 0 })
		w.cutDown.Store(false)
		w.breaks()
		err = <-done
		if calls := carriedOut() - before; c.again != (err == nil) || c.again != (calls > c.commands) {
			t.Errorf("%s: Redis was sent the request %d times, and it ended with %v; sent again: want %v", name, calls, err, c.again)
		}
	}
}
