package ladder

import (
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
)

var snapshotBeforeLock = strategy.Strategy{
	Name:                  "snapshot-before-lock",
	Doc:                   "a right lock around the COMMIT, in a transaction that has read before: under REPEATABLE READ it reads that old stock again",
	Source:                "the check before the lock and the one inside it, in one @Transactional method; MySQL Reference Manual, Consistent Nonlocking Reads",
	Guard:                 "BEGIN, SELECT; " + strategy.ReferenceGuard + "; COMMIT before the release",
	Decrement:             "read-then-write, in that transaction",
	Telling:               "contention",
	Servers:               strategy.ReadsSource | strategy.RewindProof | strategy.SwitchoverProof,
	Properties:            inclusive,
	WithSnapshotIsolation: refusedBySnapshot,
	Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
		return lockInside{LockGuard: strategy.Reference(d), Deps: d, readsFirst: true, commitsFirst: true}, sellInside(stock.Tx.Read)
	},
}
