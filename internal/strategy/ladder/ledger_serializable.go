package ladder

import (
	"database/sql"

	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var ledgerSerializable = lockingRows(strategy.Strategy{
	Name: "ledger-serializable",
	Doc:  "a ledger under SERIALIZABLE: the sum locks its rows and the gap after them, and deadlocks are retried after growing pauses",
	// An INSERT that waits for the gap does not keep new readers out of it, and waits for them, too. Where
	// all come again at once, nobody sells.
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return strategy.Unguarded{}, strategy.RetryBackingOff(d.Options, sellFromLedger(sql.LevelSerializable, nobody))
	},
}, declared.Strategy{
	Source:    "MySQL Reference Manual, Transaction Isolation Levels",
	Decrement: "SELECT SUM(quantity), INSERT, in a SERIALIZABLE transaction, repeated",
	Telling:   "contention",
	Starves:   true,
	State:     inLedger,
	// On Galera, the lock of a range is one node's, and none certifies it. It holds where that node has the other sale
	// before the COMMIT: the cell waits for that.
})
