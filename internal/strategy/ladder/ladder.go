// Package ladder has the strategies that break, from the naive to the strict. It also has those
// that hold but keep stock outside the item's row.
//
// They exist to be compared. Each is one file and one line in the list, as in package strategy. No
// shop in production contains them.
//
// # Decisions
//
// The read is outside the transaction that writes, but where the transaction is the subject. Inside
// the transaction, REPEATABLE READ would serve a snapshot. From version 11.6, MariaDB would also
// report some lost updates as errors. Then a cell would fail or hold for a reason that has nothing
// to do with its lock. A transaction around read-then-write gives no protection. It still
// oversells. In lock-in-transaction and snapshot-before-lock the lock is right and the transaction
// in the wrong place; transaction-in-lock and lock-then-for-update mend that. A failure of these is
// explained by the COMMIT or the snapshot, never by the lock. The ledgers and serializable read inside
// a transaction, too. All of them ask for their isolation level by name, so that a server with another
// default changes nothing. check-constraint-absolute reads inside READ COMMITTED, which serves no snapshot.
package ladder

import (
	"slices"

	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
	_ "stocklock/sql/lab" // the tables that some of them keep
)

// breakable lists the strategies in teaching order. At least one scenario breaks each of those
// before reservation, except those that mend another one.
var breakable = []Rung{
	none,
	mutex,
	setnx,
	setnxExpire,
	getset,
	getsetServerClock,
	setExNx,
	luaSetex,
	ownerGetDel,
	ownerWatch,
	ownerChecked,
	ownerDelex,
	reentrantFixed,
	reentrantTimer,
	reentrant,
	redlock,
	redisAsync,
	redisStream,
	// The most copied mistakes: the lock or the guard is right, or not needed, and what stands beside it is
	// wrong. What mends one comes after it.
	lockInTransaction,
	snapshotBeforeLock,
	transactionInLock,
	lockThenForUpdate,
	ledger,
	ledgerParentLocked,
	ledgerSerializable,
	serializable,
	checkConstraint,
	checkConstraintAbsolute,
	cachedRead,
	cachedReadThrough,
	cachedPage,
	wrongKeyCustomer,
	wrongKeyShop,
	retryWithoutKey,
	retryWithKey,
	ackFirst,
	reservationUnchecked,
	reservation,
	getLock,
	buckets,
	skipLocked,
}

// All returns the whole ladder: the strategies that break, and above them those fit for production.
func All() []Rung { return slices.Concat(breakable, Production()) }

// Production returns the strategies that are fit for production, with what they declare.
func Production() []Rung {
	var all []Rung
	for _, s := range strategy.All() {
		rung := Declare(s, production[s.Name])
		rung.Declared.Production = true
		all = append(all, rung)
	}
	return all
}

// Names returns the names of all strategies.
func Names() []string { return strategy.Names(Strategies(All())) }

// ByName returns the strategy of that name. The error lists all names.
func ByName(name string) (Rung, error) { return Find(name, All()) }

// Find returns the strategy of that name. The error lists all names.
func Find(name string, among []Rung) (Rung, error) {
	for _, r := range among {
		if r.Name == name {
			return r, nil
		}
	}
	_, err := strategy.Find(name, Strategies(among))
	return Rung{}, err
}

// Strategies returns the strategies without what they declare.
func Strategies(of []Rung) []strategy.Strategy {
	strategies := make([]strategy.Strategy, len(of))
	for i, r := range of {
		strategies[i] = r.Strategy
	}
	return strategies
}

// Describe returns what strategies declare.
func Describe(all []Rung) []declared.Strategy {
	descriptions := make([]declared.Strategy, len(all))
	for i, r := range all {
		descriptions[i] = r.Describe()
	}
	return descriptions
}
