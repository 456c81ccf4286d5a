package strategy

import (
	"context"

	"stocklock/internal/stock"
)

// What the strategies of other packages are built from, besides [ReadThenWrite] and the guards.

// DatabaseLock returns the properties of the database's own ways.
func DatabaseLock() Properties { return databaseLock }

// RetryConflicts returns a decrement that sells again when the database chose another transaction.
func RetryConflicts(o Options, sell Decrement) Decrement { return retryConflicts(o, sell) }

// Written announces an order that was committed.
func Written(ctx context.Context, order stock.Order, err error) (stock.Order, error) {
	return written(ctx, order, err)
}
