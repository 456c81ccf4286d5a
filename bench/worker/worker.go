// Package worker is one of the processes that want the same lock. The benchmark starts its own program
// again for each, and speaks to it in lines of JSON.
package worker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"stocklock/bench/lock"
	"stocklock/bench/section"
)

// Env is set in the environment of a worker.
const Env = "STOCKLOCK_BENCH_WORKER"

// Order is what a worker has to do. It is the first line of its input; the second one, empty, starts it.
type Order struct {
	Lock       string
	Section    string
	LockRedis  string // address of the server that has the lock
	DataRedis  string // address of the server that has the counter
	MySQL      string // DSN
	Key        string // of the lock, and the counter's name
	Lease      time.Duration
	Goroutines int
	For        time.Duration
	Pause      time.Duration // between leaving the lock and wanting it again
	Hold       int           // so many different locks, all held for the time; 0 to take one again and again
	Beside     string        // another lock, to be taken in turn with this one; or empty
}

// Result is what a worker did. It is the only line of its output after the first one, which says that it
// is ready.
type Result struct {
	// Holds has, for each goroutine, how often it got the lock in the time that was measured.
	Holds []int64 `json:"holds"`
	// Total also counts those who waited when the time was over, and got the lock soon after.
	Total   int64   `json:"total"`
	Added   int64   `json:"added"` // to the counter, by sections that went well
	Waits   []byte  `json:"waits"` // a histogram in microseconds, as HdrHistogram encodes it
	Allocs  float64 `json:"allocs"`
	Errors  int64   `json:"errors"`
	Example string  `json:"example"` // one of the errors
	// Taking and leaving each of two locks in turn, in the median.
	Pair   time.Duration `json:"pair"`
	Beside time.Duration `json:"beside"`
}

const (
	drainPatience = time.Second // for those who wait when the time is over
	openPatience  = 60 * time.Second
)

// Main is a worker's program. It returns its exit code.
func Main(in io.Reader, out io.Writer) int {
	// Ctrl-C reaches every process of the terminal: the one that started the workers ends them.
	signal.Ignore(os.Interrupt, syscall.SIGTERM)
	if err := run(context.Background(), bufio.NewReader(in), json.NewEncoder(out)); err != nil {
		fmt.Fprintln(os.Stderr, "bench worker:", err)
		return 1
	}
	return 0
}

func run(ctx context.Context, in *bufio.Reader, out *json.Encoder) (err error) {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return nil // whoever started it is gone
	}
	var o Order
	if err := json.Unmarshal(line, &o); err != nil {
		return err
	}
	work := section.All[slices.IndexFunc(section.All, func(s section.Section) bool { return s.Name == o.Section })]
	locker, err := named(o.Lock).Open(o.config())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, locker.Close()) }()
	job, err := work.Open(section.Config{Redis: o.DataRedis, MySQL: o.MySQL, Goroutines: o.Goroutines})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, job.Close()) }()
	measure := contend
	switch {
	case o.Hold > 0:
		measure = keep
	case o.Beside != "":
		measure = pairs
	}
	// What comes after the worker is told to start is measured; connections are made before.
	opening, cancel := context.WithTimeout(ctx, openPatience)
	defer cancel()
	if err := warmUp(opening, locker, job, o); err != nil {
		return err
	}
	start := func() error {
		if err := out.Encode("ready"); err != nil {
			return err
		}
		_, err := in.ReadBytes('\n')
		return err
	}
	result, err := measure(ctx, start, locker, job, o)
	if err == io.EOF {
		return nil
	}
	if err != nil {
		return err
	}
	if err := out.Encode(result); err != nil {
		return err
	}
	in.ReadBytes('\n') // the end: closing must not be measured
	return nil
}

func named(name string) lock.Lock {
	return lock.All[slices.IndexFunc(lock.All, func(l lock.Lock) bool { return l.Name == name })]
}

func (o Order) config() lock.Config {
	return lock.Config{Addr: o.LockRedis, Lease: o.Lease, Goroutines: max(o.Goroutines, min(o.Hold, openers))}
}

// patiently takes a lock before anything is measured. Some locks fail by a time limit of their own, which on
// a busy machine is no reason not to measure them.
func patiently(ctx context.Context, locker lock.Locker, key string) (lock.Hold, error) {
	for tries := 1; ; tries++ {
		held, err := locker.Lock(ctx, key)
		if err == nil || tries == 100 {
			return held, err
		}
	}
}

// warmUp takes and leaves a lock of the worker's own, and does its work on a counter of its own.
func warmUp(ctx context.Context, locker lock.Locker, job section.Work, o Order) error {
	own := fmt.Sprintf("%s-warm-up-%d", o.Key, os.Getpid())
	if err := job.Reset(ctx, own); err != nil {
		return err
	}
	for range 20 {
		held, err := patiently(ctx, locker, own)
		if err != nil {
			return err
		}
		if err := job.Run(ctx, own); err != nil {
			return err
		}
		if err := held.Unlock(); err != nil {
			return err
		}
	}
	return nil
}
