package ladder

import (
	"context"

	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var lockThenForUpdate = Declare(strategy.Strategy{
	Name:    "lock-then-for-update",
	Doc:     "both mistakes of a lock inside a transaction, and a SELECT ... FOR UPDATE that decides: it waits for the COMMIT, and reads what is there now",
	Mixable: true,
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return repeatedly{lockInside{LockGuard: strategy.Reference(d), Deps: d, readsFirst: true}}, sellInside(stock.Tx.Lock)
	},
}, declared.Strategy{
	Source:    "MySQL Reference Manual, Locking Reads; the usual mend where the transaction cannot move",
	Guard:     "BEGIN, SELECT; " + ReferenceGuard + "; COMMIT after the release; all again after a conflict",
	Decrement: "SELECT ... FOR UPDATE, UPDATE, in that transaction",
	Telling:   "contention",
	Servers:   declared.EveryServer,
	Properties: declared.Properties{
		Has: inclusive.Has | declared.Exclusive | declared.SurvivesDataLoss | declared.PauseProof | declared.StorageChecked,
	},
	WaitsInMySQL:  true,
	ReleasesFirst: true,
})

// repeatedly begins again after a conflict, from BEGIN on: a new snapshot takes a new transaction.
type repeatedly struct{ lockInside }

func (g repeatedly) Do(ctx context.Context, key string, fn func(context.Context, int64) error) error {
	_, err := strategy.Repeat(ctx, g.Options, func() (struct{}, error) {
		return struct{}{}, g.lockInside.Do(ctx, key, fn)
	})
	return err
}
