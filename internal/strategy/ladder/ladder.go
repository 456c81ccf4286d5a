// Package ladder has the strategies that break, from the naive to the strict. It also has those
// that hold but keep stock outside the item's row.
//
// They exist to be compared. Each is one file and one line in the list, as in package strategy. No
// shop in production contains them.
package ladder

import (
	"slices"

	"stocklock/internal/strategy"
)

// breakable lists the strategies in teaching order. At least one scenario breaks each of those
// before reservation, except those that mend another one.
var breakable = []strategy.Strategy{
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
func All() []strategy.Strategy { return slices.Concat(breakable, strategy.All()) }

// Names returns the names of all strategies.
func Names() []string { return strategy.Names(All()) }

// ByName returns the strategy of that name. The error lists all names.
func ByName(name string) (strategy.Strategy, error) { return strategy.Find(name, All()) }
