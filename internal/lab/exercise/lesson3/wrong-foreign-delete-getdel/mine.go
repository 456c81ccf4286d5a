// Package mine takes the value away with GETDEL, and puts a foreign one back: in between the lock is free.
package mine

import (
	"context"
	"crypto/rand"
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
	owner := rand.Text()
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
	value, err := l.Redis.GetDel(ctx, key).Result()
	if err == nil && value != owner {
		l.Redis.Set(ctx, key, value, l.Lease)
	}
}
