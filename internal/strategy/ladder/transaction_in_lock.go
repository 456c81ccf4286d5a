package ladder

import (
	"context"
	"database/sql"

	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var transactionInLock = Declare(strategy.Strategy{
	Name: "transaction-in-lock",
	Doc:  "the lock around the whole transaction: BEGIN comes after it is taken, COMMIT before it is released, and the write compares the fence",
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return strategy.Reference(d), func(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
			order, err := strategy.Repeat(ctx, d.Options, func() (stock.Order, error) { return sellInTransaction(ctx, store, wanted) })
			return strategy.Written(ctx, order, err)
		}
	},
}, declared.Strategy{
	Source:    "a lock that is taken by the caller of the transactional method; TransactionTemplate inside the lock",
	Guard:     ReferenceGuard,
	Decrement: "raise the fence; BEGIN, read, write where the fence is one's own, COMMIT",
	Telling:   "contention",
	Servers:   declared.EveryServer,
	Properties: declared.Properties{
		Has: inclusive.Has | declared.Exclusive | declared.StorageChecked,
	},
})

// sellInTransaction raises the fence in a commit of its own. Raised by the transaction, it would lock
// the row, and the read would need no lock around it.
func sellInTransaction(ctx context.Context, store *stock.Store, wanted stock.Sale) (order stock.Order, err error) {
	if err := store.RaiseFence(ctx, wanted.ItemID, wanted.Token); err != nil {
		return stock.Order{}, err
	}
	err = store.TransactAt(ctx, sql.LevelRepeatableRead, func(tx stock.Tx) error {
		order, err = strategy.ReadThen(ctx, wanted, func() (stock.Item, error) { return tx.Read(wanted.ItemID) }, tx.WriteFenced)
		return err
	})
	return order, err
}
