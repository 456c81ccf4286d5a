package worker

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"stocklock/bench/lock"
	"stocklock/bench/section"
)

// NewWaits returns a histogram of waits in microseconds, up to one minute.
func NewWaits() *hdrhistogram.Histogram { return hdrhistogram.New(1, 60_000_000, 3) }

// tally collects the results of the goroutines of a worker.
type tally struct {
	holds        []int64 // one per goroutine, which alone writes it
	total, added atomic.Int64

	mu      sync.Mutex // guards the rest
	waits   *hdrhistogram.Histogram
	errors  int64
	example string
}

func (t *tally) waited(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waits.RecordValue(min(max(d.Microseconds(), 1), t.waits.HighestTrackableValue()))
}

func (t *tally) failed(doing string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.errors++; t.errors == 1 {
		t.example = fmt.Sprintf("%s: %v", doing, err)
	}
}

func (t *tally) result(allocs float64) (Result, error) {
	waits, err := t.waits.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	return Result{
		Holds: t.holds, Total: t.total.Load(), Added: t.added.Load(), Waits: waits, Allocs: allocs, Errors: t.errors, Example: t.example,
	}, err
}

// contend lets all goroutines acquire the same lock repeatedly.
func contend(ctx context.Context, start func() error, locker lock.Locker, job section.Work, o Order) (Result, error) {
	ownWork, err := allocsOfWork(ctx, job, o)
	if err != nil {
		return Result{}, err
	}
	t := &tally{holds: make([]int64, o.Goroutines), waits: NewWaits()}
	var all sync.WaitGroup
	begin := make(chan struct{})
	var end time.Time // zero until the start, so that no goroutine works if there is none
	contenders := make([]contender, o.Goroutines)
	for i := range contenders {
		c := &contenders[i]
		c.asking, c.giveUp = context.WithCancel(ctx)
		defer c.giveUp()
		all.Go(func() {
			<-begin
			for time.Now().Before(end) {
				t.once(c, i, end, locker, job, o.Key)
				if o.Pause > 0 {
					time.Sleep(o.Pause)
				}
			}
		})
	}
	if err := start(); err != nil {
		close(begin)
		all.Wait()
		return Result{}, err
	}
	before := mallocs()
	end = time.Now().Add(o.For)
	close(begin)
	drained := time.AfterFunc(o.For+drainPatience, func() {
		for i := range contenders {
			contenders[i].stop()
		}
	})
	all.Wait()
	drained.Stop()
	allocs := float64(mallocs()-before) - ownWork*float64(t.added.Load())
	return t.result(max(allocs, 0))
}

// contender is a goroutine that acquires the lock. Its wait can be cancelled, its work cannot.
type contender struct {
	asking  context.Context
	giveUp  context.CancelFunc
	waiting atomic.Bool // whoever makes it false decides: stop, or the goroutine that has the lock
}

func (c *contender) stop() {
	if c.waiting.CompareAndSwap(true, false) {
		c.giveUp()
	}
}

// once acquires the lock, does the work and releases the lock.
func (t *tally) once(c *contender, goroutine int, end time.Time, locker lock.Locker, job section.Work, key string) {
	asked := time.Now()
	c.waiting.Store(true)
	held, err := locker.Lock(c.asking, c.asking, key)
	now := time.Now()
	if !c.waiting.CompareAndSwap(true, false) {
		t.waited(now.Sub(asked)) // a lower bound: the wait was cancelled
		if err == nil {
			held.Release(context.WithoutCancel(c.asking))
		}
		return
	}
	if err != nil {
		t.failed("lock", err)
		return
	}
	if err := job.Run(held.Context, key); err != nil {
		t.failed("work", err)
	} else {
		t.added.Add(1)
	}
	if err := held.Release(c.asking); err != nil {
		t.failed("unlock", err)
	}
	t.waited(now.Sub(asked))
	t.total.Add(1)
	if now.Before(end) {
		t.holds[goroutine]++
	}
}

// allocsOfWork returns the allocations of the work alone. The rest are the lock's.
func allocsOfWork(ctx context.Context, job section.Work, o Order) (float64, error) {
	const times = 200
	own := fmt.Sprintf("%s-allocs-%d", o.Key, os.Getpid())
	if err := job.Reset(ctx, own); err != nil {
		return 0, err
	}
	before := mallocs()
	for range times {
		if err := job.Run(ctx, own); err != nil {
			return 0, err
		}
	}
	return float64(mallocs()-before) / times, nil
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}
