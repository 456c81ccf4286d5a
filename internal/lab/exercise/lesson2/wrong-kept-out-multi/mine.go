// Package mine sends SETNX and PEXPIRE in one transaction: every try renews the lock of the holder.
package mine

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

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
	var taken *redis.Cmd
	_, err := l.Redis.TxPipelined(ctx, func(p redis.Pipeliner) error {
		taken = p.Do(ctx, "SETNX", key, 1)
		p.PExpire(ctx, key, l.Lease)
		return nil
	})
	if err != nil {
		return false, err
	}
	answer, err := taken.Int()
	return answer == 1, err
}

// release frees the lock.
func (l lock) release(ctx context.Context, key string) {
	l.Redis.Del(ctx, key)
}
