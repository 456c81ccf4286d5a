package strategy

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
)

// RetryConflicts repeats a sale that lost against another transaction: see [againstConflicts]. Its
// first loss is the point waiting, or the wait for a connection, which a sale waits for as long as others
// for a lock.
func RetryConflicts(o Options, sell Decrement) Decrement { return retryPausing(o, o.Retry, sell) }

// Retrying builds a strategy of a decrement alone, which is repeated by [RetryConflicts].
func Retrying(sell Decrement) func(Deps) (Guard, Decrement) {
	return func(d Deps) (Guard, Decrement) { return Unguarded{}, RetryConflicts(d.Options, sell) }
}

// retryPausing pauses for up to most before it repeats a sale.
func retryPausing(o Options, most time.Duration, sell Decrement) Decrement {
	return func(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
		patient := stock.WithPatience(ctx, o.Wait)
		lost := sync.OnceFunc(func() { sale.At(ctx, sale.Waiting) })
		if store.Crowded() {
			lost()
		}
		return againstConflicts(ctx, o, most, lost, func() (stock.Order, error) { return sell(patient, store, wanted) })
	}
}

// RepeatConflicts repeats a sale under a lock that lost against another transaction, from its read
// on. That takes a server which ends transactions on its own, such as a node of a cluster.
func RepeatConflicts(o Options, sell Decrement) Decrement {
	return func(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
		return Repeat(ctx, o, func() (stock.Order, error) { return sell(ctx, store, wanted) })
	}
}

// Repeat tries again after it lost against another transaction, until the time to wait is over. It
// announces no point: it is for sales under a lock, which have waited for that.
func Repeat[T any](ctx context.Context, o Options, try func() (T, error)) (T, error) {
	return againstConflicts(ctx, o, o.Retry, func() {}, try)
}

// againstConflicts tries again after losing against another transaction: the version changed, a
// deadlock was resolved, or the row stayed locked for too long. It gives up with stock.ErrConflict
// when Options.Wait is over. It calls lost after the first loss. It pauses for a random time before each
// try, whose bound doubles from Options.Retry to most.
func againstConflicts[T any](ctx context.Context, o Options, most time.Duration, lost func(), try func() (T, error)) (T, error) {
	once := sync.OnceFunc(lost)
	pause := o.Retry
	for giveUp := time.Now().Add(o.Wait); ; pause = max(o.Retry, min(2*pause, most)) {
		made, err := try()
		if errors.Is(err, stock.ErrNoConnection) {
			err = fmt.Errorf("%w: %w", ErrBusy, err)
		}
		if !errors.Is(err, stock.ErrConflict) {
			return made, err
		}
		if once(); time.Now().After(giveUp) {
			return made, err
		}
		select {
		case <-time.After(rand.N(pause + 1)):
		case <-ctx.Done():
			var none T
			return none, context.Cause(ctx)
		}
	}
}
