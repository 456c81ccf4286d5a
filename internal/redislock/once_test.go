package redislock

import (
	"cmp"
	"context"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// commandCalls says how often a server has carried out a command.
func commandCalls(t *testing.T, client *redis.Client, command string) int {
	t.Helper()
	info, err := client.Info(context.WithoutCancel(t.Context()), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	if m := regexp.MustCompile("cmdstat_" + command + `:calls=(\d+)`).FindStringSubmatch(info); m != nil {
		calls, _ = strconv.Atoi(m[1])
	}
	return calls
}

// TestClientDoesNotSendAnAttemptAgain loses the first answer of each client to a request of the
// lock. With retries at their default, go-redis sends other commands again then, and the lock's
// once.
func TestClientDoesNotSendAnAttemptAgain(t *testing.T) {
	t.Parallel()
	server, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.stop)
	direct, _ := newClient(t, server.addr)
	if err := direct.ScriptLoad(t.Context(), cancelScript.source).Err(); err != nil {
		t.Fatal(err)
	}
	const patience = 200 * time.Millisecond
	n := lockOn(t.Name())
	kinds := map[string]func(addr string) redis.UniversalClient{
		"Client": func(addr string) redis.UniversalClient {
			return redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: patience})
		},
		"ClusterClient": func(addr string) redis.UniversalClient {
			return redis.NewClusterClient(&redis.ClusterOptions{ReadTimeout: patience, ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
				return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: addr}}}}, nil
			}})
		},
	}
	requests := []struct {
		name, command string
		commands      int
		again         bool // sent again
		do            func(ctx context.Context, c redis.UniversalClient) error
	}{
		{"another client's script", "evalsha", 1, true, func(ctx context.Context, c redis.UniversalClient) error {
			return c.EvalSha(ctx, cancelScript.sha.(string), keysOf(n.name).all(), "somebody 1", 1000).Err()
		}},
		{"acquire", "evalsha", 1, false, func(ctx context.Context, c redis.UniversalClient) error {
			_, err := newPeer(c, time.Second).acquire(ctx, n, 1, true, 0)
			return err
		}},
		{"renewals in a pipeline", "evalsha", 2, false, func(ctx context.Context, c redis.UniversalClient) error {
			s := newServer(c, "")
			a, b := s.command(renewScript, n, 1, 1000), s.command(renewScript, n, 2, 1000)
			s.send(ctx, a, b)
			return cmp.Or(a.Err(), b.Err())
		}},
	}
	for kind, open := range kinds {
		for _, r := range requests {
			t.Run(kind+"/"+r.name, func(t *testing.T) {
				w := newWire(t, server.addr)
				client := open(w.addr)
				defer client.Close()
				if err := r.do(t.Context(), client); err != nil { // connects, and has Redis know the other scripts
					t.Fatal(err)
				}
				before := commandCalls(t, direct, r.command)
				w.cutDown.Store(true)
				done := make(chan error, 1)
				go func() { done <- r.do(t.Context(), client) }()
				for w.lost.Load() == 0 {
					time.Sleep(time.Millisecond)
				}
				w.cutDown.Store(false)
				if err := <-done; r.again != (err == nil) {
					t.Errorf("the request whose answer was lost ended with %v", err)
				}
				if calls := commandCalls(t, direct, r.command) - before; r.again != (calls > r.commands) {
					t.Errorf("Redis was sent the request %d times, sent again: want %v", calls, r.again)
				}
			})
		}
	}
}
