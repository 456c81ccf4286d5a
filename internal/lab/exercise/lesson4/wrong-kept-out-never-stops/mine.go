// Package mine never stops its watchdog, which renews whatever has the key: the next lock, too.
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
		acquired, err := l.Redis.SetNX(ctx, key, owner, l.Lease).Result()
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
	held, lost := context.WithCancel(ctx)
	go l.watch(context.WithoutCancel(ctx), lost, key)
	defer func() {
		lost()
		sale.At(ctx, sale.Releasing)
		l.release(context.WithoutCancel(ctx), key, owner)
	}()
	return sell(held, 0)
}

// release frees the lock, if it is still this owner's.
func (l lock) release(ctx context.Context, key, owner string) {
	const script = `
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0`
	l.Redis.Eval(ctx, script, []string{key}, owner)
}

// watch renews at every third of the lease, until there is nothing to renew. Then it calls lost.
func (l lock) watch(ctx context.Context, lost func(), key string) {
	defer lost()
	for range time.Tick(l.Lease / 3) {
		if renewed, err := l.Redis.PExpire(ctx, key, l.Lease).Result(); err == nil && !renewed {
			return
		}
	}
}
