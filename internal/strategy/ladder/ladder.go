// Package ladder holds the ways to protect a sale that break, from the naive to the strict, and
// those that hold and keep stock in other places than the item's row.
//
// They are here to be compared. Each is one file and one line in the list, as the ways of
// package strategy are, and no shop in production contains them.
package ladder

import (
	"slices"

	"stocklock/internal/strategy"
)

// breakable lists the strategies in teaching order. At least one scenario breaks each of those before
// reservation, except redis-stream.
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
	reservationUnchecked,
	reservation,
	getLock,
	buckets,
	skipLocked,
}

// All returns the whole ladder: the ways that break, and above them those fit for production.
func All() []strategy.Strategy { return slices.Concat(breakable, strategy.All()) }

// Names returns the names of all strategies.
func Names() []string { return strategy.Names(All()) }

// ByName finds a strategy. The error lists the names that there are.
func ByName(name string) (strategy.Strategy, error) { return strategy.Find(name, All()) }
