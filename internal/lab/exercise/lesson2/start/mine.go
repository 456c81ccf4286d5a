// Package mine is exercise 2: make the lock expire.
//
// The lock of this file has no expiry: where its holder dies, nobody sells any more. Change acquire
// so that a dead holder's lock ends by itself, whenever the holder dies. The lease is l.Lease. What
// release does is the subject of exercise 3. The check sells with ReadThenWrite:
// the lock has to decide.
//
// Send every request with ctx, or with context.WithoutCancel(ctx): the check holds it.
package mine

import (
	"context"
	"time"

	"stocklock/internal/sale"
	"stocklock/internal/strategy"
)

// Build makes the strategy mine: a lock, and a decrement that reads, computes and writes.
func Build(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
	return lock{d}, strategy.ReadThenWrite
}

type lock struct{ strategy.Deps }

// Do sells while it holds the lock of this key. It tries until l.Wait is over.
func (l lock) Do(ctx context.Context, key string, sell func(context.Context, int64) error) error {
	for giveUp := time.Now().Add(l.Wait); ; time.Sleep(l.Retry) {
		acquired, err := l.acquire(ctx, key)
		if err != nil {
			return err
		}
		if acquired {
			break
		}
		if time.Now().After(giveUp) {
			return strategy.ErrBusy
		}
	}
	sale.At(ctx, sale.Acquired) // for the lab: leave both points where they are
	defer func() {
		sale.At(ctx, sale.Releasing)
		l.release(context.WithoutCancel(ctx), key)
	}()
	return sell(ctx, 0)
}

// acquire tries once to take the lock.
func (l lock) acquire(ctx context.Context, key string) (bool, error) {
	answer, err := l.Redis.Do(ctx, "SETNX", key, 1).Int()
	return answer == 1, err
}

// release frees the lock.
func (l lock) release(ctx context.Context, key string) {
	l.Redis.Del(ctx, key)
}
