package ladder

import (
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var snapshotBeforeLock = Declare(strategy.Strategy{
	Name: "snapshot-before-lock",
	Doc:  "a right lock around the COMMIT, in a transaction that has read before: under REPEATABLE READ it reads that old stock again",
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return lockInside{LockGuard: strategy.Reference(d), Deps: d, readsFirst: true, commitsFirst: true}, sellInside(stock.Tx.Read)
	},
}, declared.Strategy{
	Source:                "the check before the lock and the one inside it, in one @Transactional method; MySQL Reference Manual, Consistent Nonlocking Reads",
	Guard:                 "BEGIN, SELECT; " + ReferenceGuard + "; COMMIT before the release",
	Decrement:             "read-then-write, in that transaction",
	Telling:               "contention",
	Servers:               declared.ReadsSource | declared.RewindProof | declared.SwitchoverProof,
	Properties:            inclusive,
	WithSnapshotIsolation: refusedBySnapshot,
})
