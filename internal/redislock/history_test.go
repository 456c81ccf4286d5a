package redislock

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"
)

// workerEnv makes the test binary a worker on the Redis at this address.
const workerEnv = "REDISLOCK_TEST_WORKER"

// step is one increment of a fenced counter under the lock: a line when it
// begins, and one when it ends.
type step struct {
	ID    string
	Token int64
	At    int64 // nanoseconds; all processes are on one machine
	Done  bool
	Value int64 // what was written; 0 when the fence or the loss of the lock refused it
}

var (
	raiseFence = redis.NewScript(`if tonumber(redis.call('GET', KEYS[1]) or '0') > tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1]) return 1`)
	writeFenced = redis.NewScript(`if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[2], ARGV[2]) return 1`)
)

// work increments a counter under the lock until it is killed.
func work(addr string) {
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true, ReadTimeout: time.Second})
	l := New(client, Options{Lease: 600 * time.Millisecond})
	out := json.NewEncoder(os.Stdout)
	var mu sync.Mutex
	say := func(s step) {
		mu.Lock()
		defer mu.Unlock()
		if out.Encode(s) != nil {
			os.Exit(0) // the test is gone
		}
	}
	for g := range 3 {
		go func() {
			for i := 0; ; i++ {
				held, lease, err := l.Acquire(context.Background(), "counter")
				if err != nil {
					continue
				}
				s := step{ID: fmt.Sprint(os.Getpid(), "-", g, "-", i), Token: lease.Token(), At: time.Now().UnixNano()}
				say(s)
				// Writes are sent once and answered, or the step stays without an end. They do not
				// go by held: a holder that is late is the fence's to refuse.
				if value, known := increment(held, client, lease.Token()); known {
					s.Done, s.Value, s.At = true, value, time.Now().UnixNano()
					say(s)
				}
				lease.Release()
			}
		}()
	}
	select {}
}

func increment(held context.Context, client *redis.Client, token int64) (value int64, known bool) {
	ctx := context.WithoutCancel(held)
	if ok, err := raiseFence.Run(ctx, client, []string{"fence"}, token).Bool(); err != nil || !ok {
		return 0, true
	}
	read, err := client.Get(ctx, "value").Int64()
	if err != nil && err != redis.Nil {
		return 0, true
	}
	time.Sleep(time.Millisecond)
	ok, err := writeFenced.Run(ctx, client, []string{"fence", "value"}, token, read+1).Bool()
	switch {
	case err != nil:
		return 0, false
	case !ok:
		return 0, true
	}
	return read + 1, true
}

// TestHistory has processes increment a fenced counter while they are killed and stopped,
// and their connections and scripts with them. The history must be that
// of one counter, and every hold must have its own token.
func TestHistory(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	server, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.stop)
	client, _ := newClient(t, server.addr)

	var mu sync.Mutex
	steps := map[string][]step{}
	tokens := map[int64]string{}
	var readers sync.WaitGroup
	start := func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), workerEnv+"="+server.addr)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		readers.Go(func() {
			for lines := bufio.NewScanner(out); lines.Scan(); {
				var s step
				if json.Unmarshal(lines.Bytes(), &s) != nil {
					continue // cut off by the kill
				}
				mu.Lock()
				steps[s.ID] = append(steps[s.ID], s)
				if other, taken := tokens[s.Token]; taken && other != s.ID {
					t.Errorf("token %d was given to %s and to %s", s.Token, other, s.ID)
				}
				tokens[s.Token] = s.ID
				mu.Unlock()
			}
		})
		return cmd
	}
	end := func(cmd *exec.Cmd) {
		cmd.Process.Kill()
		cmd.Process.Wait()
	}
	var workers []*exec.Cmd
	for range 4 {
		workers = append(workers, start())
	}
	ctx := t.Context()
	for until := time.Now().Add(8 * time.Second); time.Now().Before(until); {
		time.Sleep(time.Duration(random.IntN(500)) * time.Millisecond)
		i := random.IntN(len(workers))
		switch random.IntN(6) {
		case 0:
			end(workers[i])
			workers[i] = start()
		case 1:
			workers[i].Process.Signal(syscall.SIGSTOP)
			time.Sleep(time.Duration(500+random.IntN(1000)) * time.Millisecond)
			workers[i].Process.Signal(syscall.SIGCONT)
		case 2:
			client.Do(ctx, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		case 3:
			client.Do(ctx, "CLIENT", "KILL", "TYPE", "pubsub")
		case 4:
			client.ScriptFlush(ctx)
		case 5:
			client.Do(ctx, "DEBUG", "SLEEP", "0.3")
		}
	}
	for _, w := range workers {
		end(w)
	}
	readers.Wait()

	var history []porcupine.Operation
	refused, unknown := 0, 0
	over := time.Now().UnixNano()
	for _, s := range steps {
		o := porcupine.Operation{ClientId: len(history), Call: s[0].At, Return: over, Output: int64(-1)}
		if last := s[len(s)-1]; last.Done {
			o.Return, o.Output = last.At, last.Value
			if last.Value == 0 {
				refused++
				continue
			}
		} else {
			unknown++
		}
		history = append(history, o)
	}
	t.Logf("%d increments, %d of them without an answer, and %d that were refused", len(history), unknown, refused)
	if len(history) < 100 {
		t.Errorf("only %d increments: nothing was shown", len(history))
	}
	// A counter; an increment without an answer may have happened or not.
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{int64(0)} },
		Step: func(state, _, output any) []any {
			n, wrote := state.(int64), output.(int64)
			switch wrote {
			case -1:
				return []any{n, n + 1}
			case n + 1:
				return []any{n + 1}
			}
			return nil
		},
	}
	if result := porcupine.CheckOperationsTimeout(model.ToModel(), history, time.Minute); result != porcupine.Ok {
		t.Errorf("the history is %s: not that of one counter", result)
	}
}
