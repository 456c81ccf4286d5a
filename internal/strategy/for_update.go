package strategy

import (
	"context"
	"log/slog"

	"stocklock/internal/sale"
	"stocklock/internal/stock"
)

// databaseLock has the properties of strategies that lock only in the database. Their lock is the
// row's. It ends with the transaction or its connection. There is no lease, no release and no
// Redis.
var databaseLock = Properties{
	Has: DurableAnswers | Once | Exclusive | Recovers | ClockFree | PauseProof | StorageChecked,
	NotApplicable: AtomicLease | Renews | OwnerChecked | AtomicRelease | Reentrant | LossAware |
		SurvivesDataLoss,
}

var forUpdate = Strategy{
	Name:         "for-update",
	Doc:          "SELECT ... FOR UPDATE: the database's row lock, freed by the commit or by the end of the connection",
	Source:       "MySQL Reference Manual, Locking Reads",
	Guard:        "nothing",
	Decrement:    "SELECT ... FOR UPDATE, UPDATE, in a transaction",
	Telling:      "crash",
	Servers:      EveryServer,
	WithoutRedis: true,
	Properties:   databaseLock,
	Mixable:      true,
	Baskets:      &basketsInRows,
	WaitsInMySQL: true,
	Build: func(d Deps) (Guard, Decrement) {
		return Unguarded{}, retryConflicts(d.Options, sellForUpdate)
	},
}

func sellForUpdate(ctx context.Context, store *stock.Store, wanted stock.Sale) (stock.Order, error) {
	order, err := store.ForUpdate(ctx, wanted, func(read []stock.Item) error {
		sale.At(ctx, sale.Read, slog.Int64("stock", read[0].Stock))
		err := wanted.Check(read)
		if err == nil {
			sale.At(ctx, sale.Write)
		}
		return err
	})
	return written(ctx, order, err)
}
