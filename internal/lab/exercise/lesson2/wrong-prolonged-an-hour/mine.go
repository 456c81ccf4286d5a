// Package mine gives the lock an hour, to be safe: the lock of a dead holder lasts as long.
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
	return l.Redis.SetNX(ctx, key, 1, time.Hour).Result()
}

// release frees the lock.
func (l lock) release(ctx context.Context, key string) {
	l.Redis.Del(ctx, key)
}
