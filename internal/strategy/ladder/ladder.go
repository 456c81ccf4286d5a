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
// before reservation, except redis-stream and what mends a mistake.
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
	reentrantFixed,
	reentrantTimer,
	reentrant,
	redlock,
	redisAsync,
	redisStream,
	// The most copied mistakes, in which the lock is right, and what mends them.
	lockInTransaction,
	snapshotBeforeLock,
	transactionInLock,
	lockThenForUpdate,
	ownerDelex, // owner-checked, on servers that can do without its script
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
