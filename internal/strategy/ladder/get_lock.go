package ladder

import (
	"context"
	"fmt"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var getLock = Declare(strategy.Strategy{
	Name:         "get-lock",
	Doc:          "MySQL's GET_LOCK, and the sale on the connection that holds it: the lock lives as long as the connection",
	WithoutRedis: true,
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return sessionLock{d}, func(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
			if holding, ok := ctx.Value(holdingStore{}).(*stock.Store); ok {
				store = holding
			}
			return strategy.ReadThenWrite(ctx, store, wanted)
		}
	},
}, declared.Strategy{
	Source:    "MySQL Reference Manual, Locking Functions",
	Guard:     "GET_LOCK; RELEASE_LOCK",
	Decrement: "read-then-write, on the connection that holds the lock",
	Telling:   "crash",
	Servers:   declared.RewindProof | declared.SwitchoverProof,
	// The lock has no lease and is in no Redis.
	Properties: declared.Properties{
		Has: declared.Exclusive | declared.Recovers | declared.OwnerChecked | declared.Reentrant | declared.ClockFree |
			declared.PauseProof | declared.StorageChecked | declared.DurableAnswers | declared.Once,
		NotApplicable: declared.AtomicLease | declared.Renews | declared.AtomicRelease | declared.LossAware | declared.SurvivesDataLoss,
	},
	WaitsInMySQL: true,
})

// sessionLock is held by a connection, and ends with it.
type sessionLock struct{ strategy.Deps }

// holdingStore is the context key of the store that works on the connection with the lock.
type holdingStore struct{}

func (l sessionLock) Do(ctx context.Context, key string, fn func(context.Context, int64) error) error {
	store := l.Store
	if holding, ok := ctx.Value(holdingStore{}).(*stock.Store); ok {
		store = holding // the server counts how often a connection has taken the lock
	}
	got, err := store.GetLock(ctx, "stocklock."+key, l.Wait, func(on *stock.Store) error {
		sale.At(ctx, sale.Acquiring)
		sale.At(ctx, sale.Acquired)
		defer sale.At(ctx, sale.Releasing)
		return fn(context.WithValue(ctx, holdingStore{}, on), 0)
	})
	if !got && err == nil {
		return strategy.ErrBusy
	}
	if got {
		sale.At(ctx, sale.Released)
	}
	if err != nil {
		return fmt.Errorf("under %s: %w", key, err)
	}
	return nil
}
