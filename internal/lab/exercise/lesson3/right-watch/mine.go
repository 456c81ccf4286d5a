// Package mine deletes in a transaction that Redis refuses if the key changed since it was read.
package mine

import (
	"context"
	"crypto/rand"
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
	l.Redis.Watch(ctx, func(tx *redis.Tx) error {
		if value, err := tx.Get(ctx, key).Result(); err != nil || value != owner {
			return err
		}
		_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Del(ctx, key)
			return nil
		})
		return err
	}, key)
}
