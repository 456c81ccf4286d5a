package worker

import (
	"context"
	"errors"
	"slices"
	"time"

	"stocklock/bench/lock"
	"stocklock/bench/section"
)

// pairs acquires and releases the lock and another one alternately, in one goroutine. Other load on
// the machine then slows both alike. It would not if they were measured one after the other.
func pairs(ctx context.Context, start func() error, locker lock.Locker, _ section.Work, o Order) (_ Result, err error) {
	other, err := o.open(o.Beside)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, other.Close()) }()
	both, keys := []lock.Locker{locker, other}, []string{o.Key, o.Key + "-beside"}
	took := make([][]time.Duration, len(both))
	round := func() error {
		for i, l := range both {
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
		return nil
	}
	for range 100 {
		if err := round(); err != nil {
			return Result{}, err
		}
	}
	if err := start(); err != nil {
		return Result{}, err
	}
	took = make([][]time.Duration, len(both))
	for end := time.Now().Add(o.For); time.Now().Before(end); {
		if err := round(); err != nil {
			return Result{}, err
		}
	}
	return Result{Total: int64(len(took[0])), Pair: median(took[0]), Beside: median(took[1])}, nil
}

func median(durations []time.Duration) time.Duration {
	slices.Sort(durations)
	return durations[len(durations)/2]
}
