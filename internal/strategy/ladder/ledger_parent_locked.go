package ladder

import (
	"database/sql"

	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
)

var ledgerParentLocked = lockingRows(strategy.Strategy{
	Name:  "ledger-parent-locked",
	Doc:   "a ledger whose item's row is locked with FOR UPDATE before the sum is read: one sale of an item at a time",
	Build: strategy.Retrying(sellFromLedger(sql.LevelRepeatableRead, lockParent)),
}, declared.Strategy{
	Source:    "shopperlabs/shopper, pull request 591, 2026",
	Decrement: "SELECT ... FOR UPDATE of the item, SELECT SUM(quantity), INSERT, in a transaction",
	Telling:   "contention",
	// Only the read lock is on the item's row, and no node certifies that: two nodes append beside each other.
	Servers: declared.EveryServer &^ declared.WritesAnywhere,
	State:   inLedger,
})

// lockParent must come before every plain SELECT of the transaction. The first of these fixes what the
// sum is read from, and would not see what the holder of the lock has just appended.
func lockParent(tx stock.Tx, itemID uint64) error {
	var found []uint64
	err := tx.Query(&found, "SELECT id FROM items WHERE id = ? FOR UPDATE", itemID)
	if err == nil && len(found) == 0 {
		err = stock.ErrNotFound
	}
	return err
}
