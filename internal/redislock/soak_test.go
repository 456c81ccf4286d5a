package redislock

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// workerEnv makes the test binary a worker that locks on the Redis at this address, and storeEnv
// has it count on that one. A longer run is REDISLOCK_SOAK=5m, and REDISLOCK_SEED has one with the same faults again.
const (
	workerEnv = "REDISLOCK_TEST_WORKER"
	storeEnv  = "REDISLOCK_TEST_STORE"
	soakEnv   = "REDISLOCK_SOAK"
	seedEnv   = "REDISLOCK_SEED"
)

func init() {
	if addr := os.Getenv(workerEnv); addr != "" {
		work(addr)
	}
}

const workerLease = 600 * time.Millisecond

// step is one increment of a fenced counter under the lock: a line when it begins, and one when it ends.
type step struct {
	PID          int
	Token        int64
	Begun, Until int64 // until when the worker believed that it held the lock; nanoseconds: all are on one machine
	Done         bool
	Value        int64 // what was written; 0 when the fence or the loss of the lock refused it
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
	for range 3 {
		go func() {
			for {
				held, lease, err := l.Acquire(context.Background(), "counter")
				if err != nil {
					time.Sleep(time.Millisecond)
					continue
				}
				s := step{PID: os.Getpid(), Token: lease.Token(), Begun: time.Now().UnixNano()}
				var lost atomic.Int64
				stop := context.AfterFunc(held, func() { lost.Store(time.Now().UnixNano()) })
				say(s)
				// Writes are sent once and answered, or the step stays without an end. They do not
				// go by held: a holder that is late is the fence's to refuse.
				if s.Value, s.Done = increment(store, lease.Token()); s.Done {
					for !stop() && lost.Load() == 0 {
						time.Sleep(time.Millisecond)
					}
					s.Until = min(time.Now().UnixNano(), lease.Deadline().UnixNano(), cmp.Or(lost.Load(), time.Now().UnixNano()))
					say(s)
				}
				lease.Release()
			}
		}()
	}
	select {}
}

func increment(client *redis.Client, token int64) (value int64, known bool) {
	ctx := context.Background()
	if ok, err := raiseFence.Run(ctx, client, []string{"fence"}, token).Bool(); err != nil || !ok {
		return 0, true
	}
	read, err := client.Get(ctx, "value").Int64()
	if err != nil && err != redis.Nil {
		return 0, true
	}
	time.Sleep([]time.Duration{time.Millisecond, 2 * workerLease}[rand.IntN(100)/99]) // it must be renewed at times
	ok, err := writeFenced.Run(ctx, client, []string{"fence", "value"}, token, read+1).Bool()
	if err != nil || !ok {
		return 0, err == nil
	}
	return read + 1, true
}

// TestSoak has processes increment a fenced counter while they, their connections and Redis are disturbed. Every
// hold must have its own token, and the values must be those of one counter. Two holders at once may be only
// where Redis loses data or a holder is stopped.
func TestSoak(t *testing.T) {
	for name, faults := range map[string][]fault{
		"nothing is lost":                      {killWorker, killConnections, killSubscriptions, silenceWorker, flushScripts, sleepServer, restartWithData},
		"data is lost and holders are stopped": {killWorker, stopWorker, silenceWorker, killSubscriptions, flushScripts, flushAll, restartWithoutData, restartWithData},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startSoak(t)
			s.disturb(faults)
			overlaps := s.check()
			if t.Logf("%d times two holders at once, which the fence told apart", overlaps); overlaps > 0 && name == "nothing is lost" {
				t.Errorf("%d times two holders at once", overlaps)
			}
		})
	}
}

// soak is what workers on one lock report.
type soak struct {
	t       *testing.T
	random  *rand.Rand
	server  *testServer // keeps the lock
	store   *testServer // keeps the counter, undisturbed
	client  *redis.Client
	workers []*worker
	readers sync.WaitGroup

	mu     sync.Mutex
	steps  map[int64]step // by token
	holder int            // the process that began a step last
}

// worker is a process with a way of its own to Redis.
type worker struct {
	cmd *exec.Cmd
	way *wire
}

func startSoak(t *testing.T) *soak {
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv(seedEnv), 10, 64); err == nil {
		seed = s
	}
	t.Logf("seed %d", seed)
	s := &soak{t: t, random: rand.New(rand.NewPCG(seed, 0)), steps: map[int64]step{}}
	s.server, s.client = ownServer(t, "--appendonly", "yes", "--appendfsync", "always")
	s.store, _ = ownServer(t)
	for range 4 {
		s.workers = append(s.workers, s.startWorker())
	}
	return s
}

func (s *soak) startWorker() *worker {
	w := &worker{cmd: exec.Command(os.Args[0]), way: newWire(s.t, s.server.addr)}
	w.cmd.Env = append(os.Environ(), workerEnv+"="+w.way.addr, storeEnv+"="+s.store.addr)
	w.cmd.Stderr = os.Stderr
	out, err := w.cmd.StdoutPipe()
	if err == nil {
		err = w.cmd.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.readers.Go(func() {
		lines := json.NewDecoder(out)
		for one := new(step); lines.Decode(one) == nil; { // the last line may be cut off by the kill
			s.note(*one)
		}
	})
	return w
}

func (w *worker) kill() {
	w.cmd.Process.Kill()
	w.cmd.Process.Wait()
}

func (s *soak) note(now step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, known := s.steps[now.Token]; known && (before.PID != now.PID || !now.Done || before.Done) {
		s.t.Errorf("token %d was given twice", now.Token)
	}
	s.steps[now.Token] = now
	if !now.Done {
		s.holder = now.PID
	}
}

// fault disturbs one worker, or Redis.
type fault func(s *soak, w *worker)

func killWorker(s *soak, w *worker) {
	w.kill()
	*w = *s.startWorker()
}

func stopWorker(s *soak, w *worker) {
	w.cmd.Process.Signal(syscall.SIGSTOP)
	time.Sleep(s.upTo(1500))
	w.cmd.Process.Signal(syscall.SIGCONT)
}

// silenceWorker loses what it sends and is sent, without a reset.
func silenceWorker(s *soak, w *worker) {
	w.way.cutUp.Store(s.random.IntN(2) == 0)
	w.way.cutDown.Store(true)
	time.Sleep(s.upTo(2000))
	w.way.set(false)
}

func killConnections(s *soak, _ *worker) {
	s.client.ClientKillByFilter(s.t.Context(), "TYPE", "normal", "SKIPME", "yes")
}
func killSubscriptions(s *soak, _ *worker) {
	s.client.ClientKillByFilter(s.t.Context(), "TYPE", "pubsub")
}
func sleepServer(s *soak, _ *worker)        { s.client.Do(s.t.Context(), "DEBUG", "SLEEP", "0.3") }
func flushScripts(s *soak, _ *worker)       { s.client.ScriptFlush(s.t.Context()) }
func flushAll(s *soak, _ *worker)           { s.client.FlushAll(s.t.Context()) }
func restartWithData(s *soak, _ *worker)    { s.server.restart(s.t, true) }
func restartWithoutData(s *soak, _ *worker) { s.server.restart(s.t, false) }

func (s *soak) upTo(milliseconds int) time.Duration {
	return time.Duration(s.random.IntN(milliseconds)) * time.Millisecond
}

// leastSteps is how many there must be to show anything.
const leastSteps = 100

// disturb injects faults for a while, and until enough has happened between them. Half of them meet the worker
// that holds the lock, or just did. It ends the workers.
func (s *soak) disturb(faults []fault) {
	length := 8 * time.Second
	if d, err := time.ParseDuration(os.Getenv(soakEnv)); err == nil {
		length = d
	}
	for begun := time.Now(); ; {
		time.Sleep(s.upTo(500))
		victim := s.workers[s.random.IntN(len(s.workers))]
		s.mu.Lock()
		holder, enough := s.holder, len(s.steps) >= leastSteps
		s.mu.Unlock()
		for _, w := range s.workers {
			if w.cmd.Process.Pid == holder && s.random.IntN(2) == 0 {
				victim = w
			}
		}
		faults[s.random.IntN(len(faults))](s, victim)
		if past := time.Since(begun); past >= length && enough || past >= 10*length {
			break
		}
	}
	for _, w := range s.workers {
		w.kill()
	}
	s.readers.Wait()
}

// check wants the values of one counter. It returns how often a worker began to hold the
// lock while another one believed that it still did.
func (s *soak) check() (overlaps int) {
	steps := slices.Collect(maps.Values(s.steps))
	slices.SortFunc(steps, func(a, b step) int { return cmp.Compare(a.Token, b.Token) })
	value, unknown, written := int64(0), int64(0), 0
	for _, one := range steps { // an increment without an answer may have happened or not
		switch {
		case !one.Done:
			unknown++
		case one.Value > 0:
			if one.Value <= value || one.Value > value+unknown+1 {
				s.t.Errorf("token %d wrote %d after %d, with %d unknown between", one.Token, one.Value, value, unknown)
			}
			value, unknown, written = one.Value, 0, written+1
		}
	}
	slices.SortFunc(steps, func(a, b step) int { return cmp.Compare(a.Begun, b.Begun) })
	latest := int64(0)
	for _, one := range steps {
		if one.Done && one.Begun < latest {
			overlaps++
		}
		latest = max(latest, one.Until)
	}
	if s.t.Logf("%d steps, %d increments", len(steps), written); written < leastSteps/2 {
		s.t.Errorf("only %d increments: nothing was shown", written)
	}
	return overlaps
}
