package redislock

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// workerEnv makes the test binary a worker that locks on the Redis at this address, and storeEnv
// has it count on that one.
const (
	workerEnv = "REDISLOCK_TEST_WORKER"
	storeEnv  = "REDISLOCK_TEST_STORE"
)

// A longer run, such as REDISLOCK_HISTORY=5m, and one with the same faults again.
const (
	historyEnv = "REDISLOCK_HISTORY"
	seedEnv    = "REDISLOCK_SEED"
)

const workerLease = 600 * time.Millisecond

// step is one increment of a fenced counter under the lock: a line when it
// begins, and one when it ends.
type step struct {
	ID    string
	Token int64
	At    int64 // nanoseconds; all processes are on one machine
	Done  bool
	Value int64 // what was written; 0 when the fence or the loss of the lock refused it
	Until int64 // when the worker ceased to believe that it held the lock
}

var (
	raiseFence = redis.NewScript(`if tonumber(redis.call('GET', KEYS[1]) or '0') > tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1]) return 1`)
	writeFenced = redis.NewScript(`if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[2], ARGV[2]) return 1`)
)

// work increments a counter under the lock until it is killed.
func work(addr string) {
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, DialTimeout: time.Second, ReadTimeout: time.Second})
	store := redis.NewClient(&redis.Options{Addr: os.Getenv(storeEnv), MaxRetries: -1, ContextTimeoutEnabled: true})
	l := New(client, Options{Lease: workerLease})
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
					time.Sleep(time.Millisecond)
					continue
				}
				s := step{ID: fmt.Sprint(os.Getpid(), "-", g, "-", i), Token: lease.Token(), At: time.Now().UnixNano()}
				var lost atomic.Int64
				stop := context.AfterFunc(held, func() { lost.Store(time.Now().UnixNano()) })
				say(s)
				// Writes are sent once and answered, or the step stays without an end. They do not
				// go by held: a holder that is late is the fence's to refuse.
				if value, known := increment(held, store, lease.Token()); known {
					for !stop() && lost.Load() == 0 {
						time.Sleep(time.Millisecond)
					}
					s.Done, s.Value = true, value
					until := min(time.Now().UnixNano(), lease.Deadline().UnixNano())
					if at := lost.Load(); at != 0 {
						until = min(until, at)
					}
					s.Until, s.At = until, time.Now().UnixNano()
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
	work := time.Millisecond
	if rand.IntN(100) == 0 {
		work = 2 * workerLease // it must be renewed
	}
	time.Sleep(work)
	ok, err := writeFenced.Run(ctx, client, []string{"fence", "value"}, token, read+1).Bool()
	switch {
	case err != nil:
		return 0, false
	case !ok:
		return 0, true
	}
	return read + 1, true
}
