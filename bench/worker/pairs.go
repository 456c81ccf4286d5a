package worker

import (
	"context"
	"errors"
	"slices"
	"time"

	"stocklock/bench/lock"
	"stocklock/bench/section"
)

// perRound is how many holds a round of pairs has of each lock.
const perRound = 30

// pairs acquires and releases the lock and others alternately, in one goroutine. Load on the machine
// then slows all alike, which it would not if they were measured in turn. What is left of the load
// is in some rounds and not in the least one.
func pairs(ctx context.Context, start func() error, locker lock.Locker, _ section.Work, o Order) (_ Result, err error) {
	all, keys := []lock.Locker{locker}, []string{o.Key}
	for _, name := range o.Beside {
		other, err := o.open(name)
		if err != nil {
			return Result{}, err
		}
		defer func() { err = errors.Join(err, other.Close()) }()
		all, keys = append(all, other), append(keys, o.Key+"-beside-"+name)
	}
	if o.Form == Cancellable {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
	}
	least := make([]time.Duration, len(all))
	round := func() error {
		took := make([][]time.Duration, len(all))
		for range perRound {
			for i, l := range all {
				begun := time.Now()
				held, err := l.Lock(ctx, ctx, keys[i])
				if err == nil {
					err = held.Release(ctx)
				}
				if err != nil {
					return err
				}
				took[i] = append(took[i], time.Since(begun))
			}
		}
		for i := range all {
			slices.Sort(took[i])
			if median := took[i][perRound/2]; least[i] == 0 || median < least[i] {
				least[i] = median
			}
		}
		return nil
	}
	if err := round(); err != nil {
		return Result{}, err
	}
	if err := start(); err != nil {
		return Result{}, err
	}
	total := int64(0)
	for end := time.Now().Add(o.For); time.Now().Before(end); total += perRound {
		if err := round(); err != nil {
			return Result{}, err
		}
	}
	return Result{Total: total, Pair: least[0], Beside: least[1:]}, nil
}
