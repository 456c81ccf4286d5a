package ladder

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var lockInTransaction = Declare(strategy.Strategy{
	Name: "lock-in-transaction",
	Doc:  "a right lock inside a transaction: it is released first, and the COMMIT comes after, so the next holder reads what was before it",
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return lockInside{LockGuard: strategy.Reference(d), Deps: d}, sellInside(stock.Tx.Read)
	},
}, declared.Strategy{
	Source:    "a method with one annotation for the lock and one for the transaction, or @Transactional around a Redisson lock",
	Guard:     "BEGIN; " + ReferenceGuard + "; COMMIT after the release",
	Decrement: "read-then-write, in that transaction",
	Telling:   "contention",
	Servers:   declared.ReadsSource | declared.RewindProof | declared.SwitchoverProof,
	// The lock lets one sale in at a time. The stock that a sale reads can be older.
	Properties:            inclusive,
	WithSnapshotIsolation: refusedBySnapshot,
	ReleasesFirst:         true,
})

// inclusive are the properties of reentrant without Exclusive.
var inclusive = declared.Properties{Has: reentrant.Declared.Has &^ declared.Exclusive, NotApplicable: reentrant.Declared.NotApplicable}

// refusedBySnapshot is what a server adds that refuses to write over a row which has changed since the
// snapshot of the transaction.
const refusedBySnapshot = declared.Exclusive | declared.SurvivesDataLoss | declared.PauseProof | declared.StorageChecked

// lockInside begins a transaction and takes the lock in it. A second acquisition of the same sale joins
// the transaction, as frameworks do.
type lockInside struct {
	strategy.LockGuard
	strategy.Deps
	readsFirst   bool // the transaction reads the item before it takes the lock
	commitsFirst bool // before it releases the lock
}

// open is the transaction of a sale. It travels in the context, as frameworks bind one to a thread.
type open struct {
	stock.Tx
	order stock.Order
}

type openKey struct{}

func (g lockInside) Do(ctx context.Context, key string, fn func(context.Context, int64) error) error {
	if _, begun := ctx.Value(openKey{}).(*open); begun {
		return g.LockGuard.Do(ctx, key, fn)
	}
	this, releaseLast := &open{}, func() {}
	defer func() { releaseLast() }()
	err := g.Store.TransactAt(stock.WithPatience(ctx, g.Wait), sql.LevelRepeatableRead, func(tx stock.Tx) error {
		this.Tx = tx
		if g.readsFirst {
			if err := refuseEarly(tx, key); err != nil {
				return err
			}
		}
		held, token, release, err := g.Hold(context.WithValue(ctx, openKey{}, this), key)
		if err != nil {
			return err
		}
		if g.commitsFirst {
			releaseLast = release
		} else {
			defer release()
		}
		return fn(held, token)
	})
	if errors.Is(err, stock.ErrNoConnection) {
		return fmt.Errorf("%w: %w", strategy.ErrBusy, err)
	}
	_, err = strategy.Written(ctx, this.order, err)
	return err
}

// refuseEarly reads the stock so that nobody waits for the lock in vain.
func refuseEarly(tx stock.Tx, key string) error {
	itemID, err := sale.ItemOf(key)
	if err != nil {
		return err
	}
	item, err := tx.Read(itemID)
	if err == nil && item.Stock <= 0 {
		err = stock.ErrSoldOut
	}
	return err
}

// sellInside makes a sale in the transaction of [lockInside], which reads the item as it is told.
func sellInside(read func(stock.Tx, uint64) (stock.Item, error)) strategy.Decrement {
	return func(ctx context.Context, _ *stock.Store, wanted stock.Sale) (stock.Order, error) {
		this := ctx.Value(openKey{}).(*open)
		order, err := strategy.ReadThen(ctx, wanted, func() (stock.Item, error) { return read(this.Tx, wanted.ItemID) }, this.Write)
		this.order = order
		order.ID = 0 // it is not committed
		return order, err
	}
}
