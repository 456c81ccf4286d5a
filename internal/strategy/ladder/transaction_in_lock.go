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
		return strategy.Reference(d), strategy.RepeatConflicts(d.Options, sellInTransaction)
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
func sellInTransaction(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	if err := store.RaiseFence(ctx, wanted.ItemID, wanted.Token); err != nil {
		return stock.Order{}, err
	}
	order, err := stock.WithinAt(ctx, store, sql.LevelRepeatableRead, func(tx stock.Tx) (stock.Order, error) {
		return strategy.ReadThen(ctx, wanted, func() (stock.Item, error) { return tx.Read(wanted.ItemID) }, tx.WriteFenced)
	})
	return strategy.Written(ctx, order, err)
}
