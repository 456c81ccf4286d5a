package worker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"

	"stocklock/bench/lock"
	"stocklock/bench/section"
)

// openers is the number of locks that are acquired concurrently.
const openers = 16

// keep holds o.Hold different locks for o.For and counts the lost ones.
func keep(ctx context.Context, start func() error, locker lock.Locker, _ section.Work, o Order) (Result, error) {
	holds := make([]lock.Hold, o.Hold)
	t := &tally{holds: []int64{int64(o.Hold)}, waits: NewWaits()}
	renewing, stop := context.WithCancel(ctx)
	defer stop()
	var renewals sync.WaitGroup
	var taking errgroup.Group
	taking.SetLimit(openers)
	for i := range holds {
		taking.Go(func() (err error) {
			holds[i], err = patiently(ctx, locker, fmt.Sprintf("%s-%d", o.Key, i))
			if e, ok := holds[i].(lock.Extender); ok {
				renewals.Go(func() { renew(renewing, e, o.Lease, t) })
			}
			return err
		})
	}
	if err := taking.Wait(); err != nil {
		return Result{}, err
	}
	// A library that batches renewals needs up to a lease to batch locks that were acquired one by
	// one.
	time.Sleep(o.Lease)
	before := mallocs()
	err := start()
	if err == nil {
		before = mallocs()
		time.Sleep(o.For)
	}
	allocs := mallocs() - before
	stop()
	renewals.Wait()
	if err != nil {
		return Result{}, err
	}
	for _, h := range holds {
		if err := h.Context().Err(); err != nil {
			t.failed("hold", err)
		}
	}
	r := Result{Holds: t.holds, Total: int64(o.Hold), Allocs: float64(allocs), Errors: t.errors, Example: t.example}
	r.Waits, err = t.waits.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	return r, err
}

// renew extends a lock at every third of its lease, for libraries that do not renew by themselves.
func renew(ctx context.Context, e lock.Extender, lease time.Duration, t *tally) {
	ticker := time.NewTicker(lease / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if err := e.Extend(ctx); err != nil && ctx.Err() == nil {
				t.failed("renew", err)
				return
			}
		case <-ctx.Done():
			return
		}
	}
}
