package worker

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"stocklock/bench/lock"
)

// openers is the number of locks that are acquired concurrently.
const openers = 16

// keep holds o.Hold different locks for o.For and counts the lost ones. The others are left to release: what that costs
// is no part of keeping them.
func keep(ctx context.Context, start func() error, locker lock.Locker, o Order) (_ Result, release func() error, err error) {
	holds := make([]lock.Hold, o.Hold)
	t := &tally{holds: []int64{int64(o.Hold)}, waits: NewWaits()}
	var taking errgroup.Group
	taking.SetLimit(openers)
	for i := range holds {
		taking.Go(func() (err error) {
			holds[i], err = patiently(ctx, locker, fmt.Sprintf("%s-%d", o.Key, i))
			if err == nil && holds[i].Extend != nil {
				holds[i] = lock.Renewed(holds[i], o.Lease)
			}
			return err
		})
	}
	if err := taking.Wait(); err != nil {
		return Result{}, nil, err
	}
	// A library that batches renewals needs up to a lease to batch locks that were acquired one by
	// one.
	time.Sleep(o.Lease)
	if err := start(); err != nil {
		return Result{}, nil, err
	}
	before := mallocs()
	time.Sleep(o.For)
	allocs := mallocs() - before
	var kept []lock.Hold
	for _, h := range holds {
		if h.Context.Err() != nil {
			t.failed("hold", context.Cause(h.Context))
		} else {
			kept = append(kept, h)
		}
	}
	result, err := t.result(float64(allocs))
	return result, func() error {
		for _, h := range kept {
			taking.Go(func() error { return h.Release(ctx) })
		}
		return taking.Wait()
	}, err
}
