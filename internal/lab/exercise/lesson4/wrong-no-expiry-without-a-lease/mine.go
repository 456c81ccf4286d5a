// Package mine takes a lock that does not end, so that no work outlasts it: a holder that dies keeps it for ever.
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
		acquired, err := l.Redis.SetNX(ctx, key, owner, 0).Result()
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

// release frees the lock, if it is still this owner's.
func (l lock) release(ctx context.Context, key, owner string) {
	const script = `
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0`
	l.Redis.Eval(ctx, script, []string{key}, owner)
}
