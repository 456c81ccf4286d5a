package strategy

import (
	"context"

	"stocklock/internal/stock"
)

// Strategies of other packages use these functions, besides those that read and then write, and the guards.

// RetryConflicts returns a decrement that repeats a sale that lost against another transaction.
func RetryConflicts(o Options, sell Decrement) Decrement { return retryConflicts(o, sell) }

// RepeatConflicts returns a decrement under a lock that repeats a sale that lost against another
// transaction.
func RepeatConflicts(o Options, sell Decrement) Decrement { return repeatConflicts(o, sell) }

// Repeat tries again after it lost against another transaction, until the time to wait is over. It
// announces no point: it is for sales under a lock, which have waited for that.
func Repeat[T any](ctx context.Context, o Options, try func() (T, error)) (T, error) {
	return againstConflicts(ctx, o, o.Retry, func() {}, try)
}

// RetryBackingOff is [RetryConflicts] with a pause that doubles. Sales whose locks do not keep out the
// repeats of others need it: those that come again at once can starve each other without an end.
func RetryBackingOff(o Options, sell Decrement) Decrement { return retryPausing(o, o.Wait/8, sell) }

// Written announces an order that was committed.
func Written(ctx context.Context, order stock.Order, err error) (stock.Order, error) {
	return written(ctx, order, err)
}
