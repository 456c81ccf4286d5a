// Package mine renews five times, which was enough for all work until now.
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
	go l.watch(held, lost, key, owner)
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

// maxRenewals is meant for holders that hang.
const maxRenewals = 5

// watch renews at every third of the lease, until ctx ends, and calls lost where it cannot.
func (l lock) watch(ctx context.Context, lost func(), key, owner string) {
	tick := time.NewTicker(l.Lease / 3)
	defer tick.Stop()
	for range maxRenewals {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		renewing, cancel := context.WithTimeout(ctx, l.Lease/3)
		renewed, err := l.renew(renewing, key, owner)
		cancel()
		if err != nil || renewed == 0 {
			lost()
			return
		}
	}
}

// renew gives the lock another lease, if it is still this owner's. It returns 1, or 0 for a lock
// that is lost.
func (l lock) renew(ctx context.Context, key, owner string) (int, error) {
	const script = `
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0`
	return l.Redis.Eval(ctx, script, []string{key}, owner, l.Lease.Milliseconds()).Int()
}
