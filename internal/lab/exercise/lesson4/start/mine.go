// Package mine is exercise 4: keep the lock for as long as the work takes, and stop the work when
// the lock is lost.
//
// Only the owner of this file's lock frees it, but the lock ends after l.Lease even though its
// holder still works. Renew it while sell runs. If it cannot be renewed, sell must stop before
// another holder can have the lock: end the context that sell is given. The lock of a holder that
// dies must still end.
//
// Renew in a goroutine, with a script or with PEXPIRE: the lab lets both pass while a sale is held.
// Stop it before the point Releasing. The check sells with ReadThenWrite, which checks its context
// before the read and before the write. The write of a stopped process is exercise 5.
//
// Send every other request with ctx, or with context.WithoutCancel(ctx): the check holds what a sale
// sends.
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
