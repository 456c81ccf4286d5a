package strategy

import (
	"context"
	"log/slog"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
)

// everything is what the database's own ways have: they hold no lease, so they
// can lose none, and the database refuses whoever came too late.
const everything = Exclusive | Recovers | AtomicLease | Renews | OwnerChecked | AtomicRelease | Reentrant | ClockFree |
	LossAware | SurvivesFailover | PauseProof | StorageChecked

var forUpdate = Strategy{
	Name:       "for-update",
	Doc:        "SELECT ... FOR UPDATE: the database's row lock, freed by the commit or by the end of the connection",
	Source:     "MySQL Reference Manual, Locking Reads",
	Guard:      "nothing",
	Decrement:  "SELECT ... FOR UPDATE, UPDATE, in a transaction",
	Telling:    "crash",
	Properties: everything,
	build: func(d Deps) (guard, decrement) {
		return unguarded{}, retryConflicts(d.Options, sellForUpdate)
	},
}

func sellForUpdate(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	tx, cancel := committing(ctx, rowTimeout)
	defer cancel()
	order, err := store.ForUpdate(tx, wanted, func(read stock.Item) error {
		sale.At(ctx, sale.Read, slog.Int64("stock", read.Stock))
		_, err := read.Take(wanted.Quantity)
		if err == nil {
			sale.At(ctx, sale.Write)
		}
		return err
	})
	return written(ctx, order, err)
}
