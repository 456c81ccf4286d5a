package redislock

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// commandCalls says how often a server has carried out a command.
func commandCalls(t *testing.T, client *redis.Client, command string) int {
	t.Helper()
	info, err := client.Info(context.WithoutCancel(t.Context()), "commandstats").Result()
	must(t, err)
	_, after, _ := strings.Cut(info, "cmdstat_"+command+":calls=")
	calls, _, _ := strings.Cut(after, ",")
	n, _ := strconv.Atoi(calls)
	return n
}

// TestClientDoesNotSendAnAttemptAgain loses the answer to a request, and the connection. With retries at their
// default, go-redis sends other commands again then, and the lock's once.
func TestClientDoesNotSendAnAttemptAgain(t *testing.T) {
	t.Parallel()
	server, direct := ownServer(t)
	n := lockOn(t.Name())
	for name, c := range map[string]struct {
		commands int
		again    bool // sent again
		do       func(c *redis.Client) error
	}{
		"another client's script": {1, true, func(c *redis.Client) error {
			return c.EvalSha(t.Context(), cancelScript.sha.(string), keysOf(n.name).all(), "somebody 1", 1000).Err()
		}},
		"acquire": {1, false, func(c *redis.Client) error {
			_, err := newPeer(c, time.Second).acquire(t.Context(), n, 1, true, 0)
			return err
		}},
		"renewals in a pipeline": {2, false, func(c *redis.Client) error {
			s := newServer(c, "")
			a, b := s.command(renewScript, n, 1, 1000), s.command(renewScript, n, 2, 1000)
			s.send(t.Context(), a, b)
			return cmp.Or(a.Err(), b.Err())
		}},
	} {
		must(t, newPeer(direct, time.Second).cancel(t.Context(), n, 1)) // Redis knows the script
		w := newWire(t, server.addr)
		client := defaults(t, w.addr, time.Minute)
		must(t, c.do(client)) // connects
		before := commandCalls(t, direct, "evalsha")
		w.cutDown.Store(true)
		done := make(chan error, 1)
		go func() { done <- c.do(client) }()
		eventually(t, "the answer is lost", func() bool { return w.lost.Load() > 0 })
		w.cutDown.Store(false)
		w.breaks()
		err := <-done
		if calls := commandCalls(t, direct, "evalsha") - before; c.again != (err == nil) || c.again != (calls > c.commands) {
			t.Errorf("%s: Redis was sent the request %d times, and it ended with %v; sent again: want %v", name, calls, err, c.again)
		}
	}
}
