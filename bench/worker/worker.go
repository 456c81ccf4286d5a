// Package worker is the program of the processes that compete for a lock. The benchmark starts its
// own binary again for each worker and exchanges lines of JSON with it.
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

// Env is the environment variable that marks a process as a worker.
const Env = "STOCKLOCK_BENCH_WORKER"

// Order says what a worker does. It is the first line of the worker's input. The second line is
// empty and starts the measurement.
type Order struct {
	Lock       string
	Section    string
	Servers    []string // addresses of the Redis servers of the lock
	Etcd       string   // address, for a lock that is in etcd
	DataRedis  string   // address of the server with the counter
	MySQL      string   // DSN
	Key        string   // the key of the lock and the name of the counter
	Lease      time.Duration
	Goroutines int
	For        time.Duration
	Pause      time.Duration // between a release and the next acquisition
	Hold       int           // number of different locks to hold; 0 to acquire one lock repeatedly
	Beside     []string      // locks to alternate with, if any
	Form       Form          // of alternate holds
}

// Result is the second and last line of a worker's output. The first line says that the worker is
// ready.
type Result struct {
	// Holds counts the acquisitions of each goroutine within the measured time.
	Holds []int64 `json:"holds"`
	// Total also counts acquisitions by goroutines that were waiting when the time was over.
	Total   int64   `json:"total"`
	Added   int64   `json:"added"` // successful sections; each added one to the counter
	Waits   []byte  `json:"waits"` // a histogram in microseconds, in the encoding of HdrHistogram
	Allocs  float64 `json:"allocs"`
	Errors  int64   `json:"errors"`
	Example string  `json:"example"` // one of the errors
	// Pair and Beside are the times to acquire and release each of the locks: the least of the rounds' medians.
	Pair   time.Duration   `json:"pair"`
	Beside []time.Duration `json:"beside"`
}

// Form is how callers can give up who acquire locks alternately.
type Form string

const (
	Plain       Form = ""            // not at all
	Cancellable Form = "cancellable" // by their context
	Wait        Form = "wait"        // after a time, as far as a lock has a setting for that
)

const (
	drainPatience = time.Second // for goroutines that wait when the time is over
	openPatience  = 60 * time.Second
)

// Main runs a worker and returns its exit code.
func Main(in io.Reader, out io.Writer) int {
	// Ctrl-C reaches every process of the terminal. The process that started the workers stops
	// them.
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
		return nil // the process that started this worker is gone
	}
	var o Order
	if err := json.Unmarshal(line, &o); err != nil {
		return err
	}
	work := section.All[slices.IndexFunc(section.All, func(s section.Section) bool { return s.Name == o.Section })]
	locker, err := o.open(o.Lock)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, locker.Close()) }()
	job, err := work.Open(section.Config{Redis: o.DataRedis, MySQL: o.MySQL, Goroutines: o.Goroutines})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, job.Close()) }()
	measure, release := contend, func() error { return nil }
	switch {
	case o.Hold > 0:
		measure = func(ctx context.Context, start func() error, locker lock.Locker, _ section.Work, o Order) (kept Result, err error) {
			kept, release, err = keep(ctx, start, locker, o)
			return kept, err
		}
	case len(o.Beside) > 0:
		measure = pairs
	}
	// Only the time after the start is measured. Connections are made before it.
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
	in.ReadBytes('\n') // wait for the end, so that closing is not measured
	return release()
}

// open opens the lock of that name with clients for all goroutines. Close of the result closes them too.
func (o Order) open(name string) (lock.Locker, error) {
	kind := lock.All[lock.Place(name)]
	c := lock.Config{Etcd: []string{o.Etcd}, Lease: o.Lease, Poll: time.Millisecond}
	if o.Form == Wait {
		c.Wait = time.Minute
	}
	for _, addr := range o.Servers[:kind.Servers()] {
		c.Redis = append(c.Redis, lock.NewClient(addr, max(o.Goroutines, min(o.Hold, openers))))
	}
	locker, err := kind.Open(c)
	own := locker.Close
	locker.Close = func() (err error) {
		if own != nil {
			err = own()
		}
		for _, client := range c.Redis {
			err = errors.Join(err, client.Close())
		}
		return err
	}
	return locker, err
}

// patiently acquires a lock before the measurement. It retries, because some locks have a time
// limit of their own and exceed it on a busy machine.
func patiently(ctx context.Context, locker lock.Locker, key string) (lock.Hold, error) {
	for tries := 1; ; tries++ {
		held, err := locker.Lock(ctx, ctx, key)
		if err == nil || tries == 100 {
			return held, err
		}
	}
}

// warmUp acquires and releases a lock that only this worker uses, with a counter of its own.
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
		if err := held.Release(ctx); err != nil {
			return err
		}
	}
	return nil
}
