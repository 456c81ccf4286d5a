package redislock

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"
)

// TestHistory has processes increment a fenced counter while they, their connections and Redis are
// disturbed. The history must be that of one counter, and every hold must have its own token. Two
// holders at once may be only where Redis loses data or a holder is stopped.
func TestHistory(t *testing.T) {
	t.Run("nothing is lost", func(t *testing.T) {
		t.Parallel()
		h := startHistory(t)
		h.disturb([]fault{killWorker, killConnections, killSubscriptions, silenceWorker, flushScripts, sleepServer, restartWithData})
		if overlaps := h.check(); overlaps > 0 {
			t.Errorf("%d times two holders at once", overlaps)
		}
	})
	t.Run("data is lost and holders are stopped", func(t *testing.T) {
		t.Parallel()
		h := startHistory(t)
		h.disturb([]fault{killWorker, stopWorker, silenceWorker, killSubscriptions, flushScripts, flushAll, restartWithoutData, restartWithData})
		t.Logf("%d times two holders at once, which the fence told apart", h.check())
	})
}

// history is what workers on one lock report.
type history struct {
	t       *testing.T
	random  *rand.Rand
	server  *testServer // keeps the lock
	store   *testServer // keeps the counter, undisturbed
	client  *redis.Client
	workers []*worker
	readers sync.WaitGroup

	mu     sync.Mutex
	steps  map[string][]step
	tokens map[int64]string
	holder int // the process that began a step last
}

// worker is a process with a way of its own to Redis.
type worker struct {
	cmd *exec.Cmd
	way *wire
}

func startHistory(t *testing.T) *history {
	needsServer(t)
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv(seedEnv), 10, 64); err == nil {
		seed = s
	}
	t.Logf("seed %d", seed)
	h := &history{t: t, random: rand.New(rand.NewPCG(seed, 0)), steps: map[string][]step{}, tokens: map[int64]string{}}
	for _, s := range []**testServer{&h.server, &h.store} {
		var err error
		if *s, err = startServer("--appendonly", "yes", "--appendfsync", "always"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup((*s).stop)
	}
	h.client, _ = newClient(t, h.server.addr)
	for range 4 {
		h.workers = append(h.workers, h.startWorker())
	}
	return h
}

func (h *history) startWorker() *worker {
	w := &worker{cmd: exec.Command(os.Args[0]), way: newWire(h.t, h.server.addr)}
	w.cmd.Env = append(os.Environ(), workerEnv+"="+w.way.addr, storeEnv+"="+h.store.addr)
	w.cmd.Stderr = os.Stderr
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.readers.Go(func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var s step
			if json.Unmarshal(lines.Bytes(), &s) == nil { // else it was cut off by the kill
				h.note(s)
			}
		}
	})
	return w
}

func (w *worker) kill() {
	w.cmd.Process.Kill()
	w.cmd.Process.Wait()
}

func (h *history) note(s step) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.steps[s.ID] = append(h.steps[s.ID], s)
	if !s.Done {
		fmt.Sscanf(s.ID, "%d-", &h.holder)
	}
	if other, taken := h.tokens[s.Token]; taken && other != s.ID {
		h.t.Errorf("token %d was given to %s and to %s", s.Token, other, s.ID)
	}
	h.tokens[s.Token] = s.ID
}

// fault disturbs one worker, or Redis.
type fault func(h *history, w *worker)

func killWorker(h *history, w *worker) {
	w.kill()
	*w = *h.startWorker()
}

func stopWorker(h *history, w *worker) {
	w.cmd.Process.Signal(syscall.SIGSTOP)
	time.Sleep(h.upTo(1500))
	w.cmd.Process.Signal(syscall.SIGCONT)
}

// silenceWorker loses what it sends and is sent, without a reset.
func silenceWorker(h *history, w *worker) {
	w.way.cutUp.Store(h.random.IntN(2) == 0)
	w.way.cutDown.Store(true)
	time.Sleep(h.upTo(2000))
	w.way.cutUp.Store(false)
	w.way.cutDown.Store(false)
}

func killConnections(h *history, _ *worker) {
	h.client.Do(h.t.Context(), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
}

func killSubscriptions(h *history, _ *worker) {
	h.client.Do(h.t.Context(), "CLIENT", "KILL", "TYPE", "pubsub")
}

func sleepServer(h *history, _ *worker)        { h.client.Do(h.t.Context(), "DEBUG", "SLEEP", "0.3") }
func flushScripts(h *history, _ *worker)       { h.client.ScriptFlush(h.t.Context()) }
func flushAll(h *history, _ *worker)           { h.client.FlushAll(h.t.Context()) }
func restartWithData(h *history, _ *worker)    { h.server.restart(h.t, true) }
func restartWithoutData(h *history, _ *worker) { h.server.restart(h.t, false) }

func (h *history) upTo(milliseconds int) time.Duration {
	return time.Duration(h.random.IntN(milliseconds)) * time.Millisecond
}

// leastIncrements is how many a history must have to show anything.
const leastIncrements = 50

// disturb injects faults for a while, and until enough has happened between them. It ends the workers.
func (h *history) disturb(faults []fault) {
	length := 8 * time.Second
	if d, err := time.ParseDuration(os.Getenv(historyEnv)); err == nil {
		length = d
	}
	enough := func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.steps) >= 2*leastIncrements // some are refused
	}
	for begun := time.Now(); time.Since(begun) < length || !enough() && time.Since(begun) < 10*length; {
		time.Sleep(h.upTo(500))
		faults[h.random.IntN(len(faults))](h, h.victim())
	}
	for _, w := range h.workers {
		w.kill()
	}
	h.readers.Wait()
}

// victim is the worker that holds the lock, or just did, or any other one.
func (h *history) victim() *worker {
	anyone := h.workers[h.random.IntN(len(h.workers))]
	if h.random.IntN(2) == 0 {
		return anyone
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.workers {
		if w.cmd.Process.Pid == h.holder {
			return w
		}
	}
	return anyone
}

// check wants the history of one counter. It returns how often a worker began to hold the
// lock while another one believed that it still did.
func (h *history) check() (overlaps int) {
	var operations []porcupine.Operation
	type belief struct{ from, until int64 }
	var beliefs []belief
	refused, unknown := 0, 0
	over := time.Now().UnixNano()
	for _, s := range h.steps {
		o := porcupine.Operation{ClientId: len(operations), Call: s[0].At, Return: over, Output: int64(-1)}
		if last := s[len(s)-1]; last.Done {
			beliefs = append(beliefs, belief{s[0].At, last.Until})
			o.Return, o.Output = last.At, last.Value
			if last.Value == 0 {
				refused++
				continue
			}
		} else {
			unknown++
		}
		operations = append(operations, o)
	}
	slices.SortFunc(beliefs, func(a, b belief) int { return int(a.from - b.from) })
	latest := int64(0)
	for _, b := range beliefs {
		if b.from < latest {
			overlaps++
		}
		latest = max(latest, b.until)
	}
	h.t.Logf("%d increments, %d of them without an answer, and %d that were refused", len(operations), unknown, refused)
	if len(operations) < leastIncrements {
		h.t.Errorf("only %d increments: nothing was shown", len(operations))
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
	if result := porcupine.CheckOperationsTimeout(model.ToModel(), operations, time.Minute); result != porcupine.Ok {
		h.t.Errorf("the history is %s: not that of one counter", result)
	}
	return overlaps
}
