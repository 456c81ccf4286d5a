// Package mine is exercise 3: free your own lock, and nobody else's.
//
// The lock of this file ends by itself, but its release frees whoever's lock it is by then. Change
// the lock so that release deletes only what the same acquire has set. Between the check and the
// delete the lock must not change hands.
//
// The check sells with ReadThenWrite: the lock has to decide. What a holder writes after its lease
// is exercise 5.
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
	owner := "1"
	for giveUp := time.Now().Add(l.Wait); ; time.Sleep(l.Retry) {
		acquired, err := l.acquire(ctx, key, owner)
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
		l.release(context.WithoutCancel(ctx), key, owner)
	}()
	return sell(ctx, 0)
}

// acquire tries once to take the lock.
func (l lock) acquire(ctx context.Context, key, owner string) (bool, error) {
	return l.Redis.SetNX(ctx, key, owner, l.Lease).Result()
}

// release frees the lock.
func (l lock) release(ctx context.Context, key, owner string) {
	l.Redis.Del(ctx, key)
}
