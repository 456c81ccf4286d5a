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

// workerEnv makes the test binary a worker that locks on the Redis at this address. A longer run is
// REDISLOCK_SOAK=5m, and REDISLOCK_SEED has one with the same faults again.
const workerEnv, soakEnv, seedEnv = "REDISLOCK_TEST_WORKER", "REDISLOCK_SOAK", "REDISLOCK_SEED"

func init() {
	if addr := os.Getenv(workerEnv); addr != "" {
		work(addr)
	}
}

const workerLease = 600 * time.Millisecond

// belief is a hold as its worker believes in it: a line when it begins, and one when it ends.
type belief struct {
	PID          int
	Token        int64
	Begun, Until int64 // nanoseconds: all are on one machine. Until is 0 at first
}

// work holds the lock again and again until it is killed.
func work(addr string) {
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, DialTimeout: time.Second, ReadTimeout: time.Second})
	l := New(client, Options{Lease: workerLease})
	out := json.NewEncoder(os.Stdout)
	var mu sync.Mutex
	say := func(b belief) {
		mu.Lock()
		defer mu.Unlock()
		if out.Encode(b) != nil {
			os.Exit(0) // the test is gone
		}
	}
	for range 3 {
		go func() {
			for {
				held, lease, err := l.Acquire(context.Background(), "soak")
				if err != nil {
					time.Sleep(time.Millisecond)
					continue
				}
				b := belief{PID: os.Getpid(), Token: lease.Token(), Begun: time.Now().UnixNano()}
				var lost atomic.Int64
				stop := context.AfterFunc(held, func() { lost.Store(time.Now().UnixNano()) })
				say(b)
				time.Sleep([]time.Duration{time.Millisecond, 2 * workerLease}[rand.IntN(100)/99]) // it must be renewed at times
				for !stop() && lost.Load() == 0 {
					time.Sleep(time.Millisecond)
				}
				now := time.Now().UnixNano()
				b.Until = min(now, lease.Deadline().UnixNano(), cmp.Or(lost.Load(), now))
				say(b)
				lease.Release()
			}
		}()
	}
	select {}
}

// TestSoak has processes hold one lock while they, their connections and Redis are disturbed. Every hold has its
// own token. Two believe at once that they hold it only where Redis loses data or a holder is stopped.
func TestSoak(t *testing.T) {
	for name, faults := range map[string][]fault{
		"nothing is lost":                      {killWorker, killConnections, killSubscriptions, silenceWorker, flushScripts, sleepServer, restartWithData},
		"data is lost and holders are stopped": {killWorker, stopWorker, silenceWorker, killSubscriptions, flushScripts, flushAll, restartWithoutData},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := uint64(time.Now().UnixNano())
			if s, err := strconv.ParseUint(os.Getenv(seedEnv), 10, 64); err == nil {
				seed = s
			}
			s := &soak{t: t, random: rand.New(rand.NewPCG(seed, 0)), beliefs: map[int64]belief{}}
			s.server, s.client = ownServer(t, "--appendonly", "yes", "--appendfsync", "always")
			for range 4 {
				s.workers = append(s.workers, s.startWorker())
			}
			s.disturb(faults)
			overlaps := s.overlaps()
			if t.Logf("seed %d: %d holds, %d times two at once", seed, len(s.beliefs), overlaps); overlaps > 0 && name == "nothing is lost" {
				t.Errorf("%d times two holders at once", overlaps)
			}
		})
	}
}

// soak is what workers on one lock report.
type soak struct {
	t       *testing.T
	random  *rand.Rand
	server  *testServer
	client  *redis.Client
	workers []*worker
	readers sync.WaitGroup

	mu      sync.Mutex
	beliefs map[int64]belief // by token
	holder  int              // the process that began to hold last
}

// worker is a process with a way of its own to Redis.
type worker struct {
	cmd *exec.Cmd
	way *wire
}

func (s *soak) startWorker() *worker {
	w := &worker{cmd: exec.Command(os.Args[0]), way: newWire(s.t, s.server.addr)}
	w.cmd.Env, w.cmd.Stderr = append(os.Environ(), workerEnv+"="+w.way.addr), os.Stderr
	out, err := w.cmd.StdoutPipe()
	must(s.t, err)
	must(s.t, w.cmd.Start())
	s.readers.Go(func() {
		lines := json.NewDecoder(out)
		for b := new(belief); lines.Decode(b) == nil; { // the last line may be cut off by the kill
			s.note(*b)
		}
	})
	return w
}

func (w *worker) kill() {
	w.cmd.Process.Kill()
	w.cmd.Process.Wait()
}

func (s *soak) note(now belief) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, known := s.beliefs[now.Token]; known && (before.Begun != now.Begun || now.Until == 0) {
		s.t.Errorf("token %d was given twice", now.Token)
	}
	if s.beliefs[now.Token] = now; now.Until == 0 {
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

func (s *soak) do(args ...any) { s.client.Do(s.t.Context(), args...) }

func killConnections(s *soak, _ *worker)    { s.do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes") }
func killSubscriptions(s *soak, _ *worker)  { s.do("CLIENT", "KILL", "TYPE", "pubsub") }
func sleepServer(s *soak, _ *worker)        { s.do("DEBUG", "SLEEP", "0.3") }
func flushScripts(s *soak, _ *worker)       { s.do("SCRIPT", "FLUSH") }
func flushAll(s *soak, _ *worker)           { s.do("FLUSHALL") }
func restartWithData(s *soak, _ *worker)    { s.server.restart(s.t, true) }
func restartWithoutData(s *soak, _ *worker) { s.server.restart(s.t, false) }

func (s *soak) upTo(milliseconds int) time.Duration {
	return time.Duration(s.random.IntN(milliseconds)) * time.Millisecond
}

// disturb injects faults for a while, and until a hundred holds were between them. Half of them meet the worker
// that holds the lock, or just did. It ends the workers.
func (s *soak) disturb(faults []fault) {
	length := 8 * time.Second
	if d, err := time.ParseDuration(os.Getenv(soakEnv)); err == nil {
		length = d
	}
	for begun, holds := time.Now(), 0; holds < 100 || time.Since(begun) < length; {
		if time.Since(begun) > 10*length {
			s.t.Errorf("only %d holds: nothing was shown", holds)
			break
		}
		time.Sleep(s.upTo(500))
		victim := s.workers[s.random.IntN(len(s.workers))]
		s.mu.Lock()
		holder := s.holder
		holds = len(s.beliefs)
		s.mu.Unlock()
		for _, w := range s.workers {
			if w.cmd.Process.Pid == holder && s.random.IntN(2) == 0 {
				victim = w
			}
		}
		faults[s.random.IntN(len(faults))](s, victim)
	}
	for _, w := range s.workers {
		w.kill()
	}
	s.readers.Wait()
}

// overlaps returns how often a worker began to hold the lock while another one believed that it still did.
func (s *soak) overlaps() (n int) {
	all := slices.SortedFunc(maps.Values(s.beliefs), func(a, b belief) int { return cmp.Compare(a.Begun, b.Begun) })
	latest := int64(0)
	for _, b := range all {
		if b.Until > 0 && b.Begun < latest {
			n++
		}
		latest = max(latest, b.Until)
	}
	return n
}
