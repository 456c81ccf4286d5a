// Package strategy defines strategies, and has those that are fit for production.
//
// A strategy is a guard and a decrement. The guard decides which sale may enter the section: it is
// a lock, or nothing. The decrement writes the stock: it reads, computes in Go and writes back, or
// lets the database compute. Each strategy is one file and one line in [All].
//
// The strategies that break are in package ladder, which only the lab imports.
//
// # Decisions
//
// The write is not cancelled with the lock. The decrement checks its context one last time before
// it writes. It then commits on a context of its own, with a timeout, because a cancelled COMMIT
// has an unknown outcome. The fence, not the context, makes a late write harmless.
//
// A token is refused when it is lower, never when it is different. The fence admits the same holder
// again (fence <= ?) and refuses only older holders. For this, the MySQL driver must count matched
// rows, not changed rows (clientFoundRows). Otherwise a holder that raises the fence twice would
// look refused.
//
// A refusal costs no lock. A basket with one sold-out line among fifty would acquire and release
// fifty locks, and make all other sales of these items wait. So a shop remembers what it refused as
// sold out, as held by others, or for a customer's limit. The next such sale looks by plain SELECTs
// before its guard, and the next reservation before it locks a row. The check under the lock stays. A
// sale of something else sends nothing more. A replica that is behind can answer the look, so once a
// second it is sent to the primary. batched looks once for a batch.
//
// A repeated key is found by the INSERT. A look before the batch would leave out the keys of a sale
// that another shop is about to commit. So the key is looked up under the item's row, after the
// INSERT has failed, where all earlier sales of the item can be seen, and the order goes to the
// repeat. While batches meet repeats, they look first, because a failed INSERT locks gaps of the
// index. They also look before they wait for the row: a batch that has nothing but repeats needs none.
//
// Every writer locks items in the order of their ids. The lines of a basket are sorted, and two
// lines of one item become one, before anything is asked of Redis or MySQL: sales, restocks,
// corrections and cancellations then wait only for items behind those that they have, and no two
// wait for each other. With a lock, strategy.Seller acquires one inside the other, in that order.
// batched sells a basket in a transaction of its own, and the baskets do not wait for a batch.
// Deadlocks that remain are repeated and counted in shop_deadlocks_total.
//
// conditional and batched update the stock before they insert the orders. The row is then locked
// for one round trip more than in the other order. In exchange, each order says which stock it
// read, and the ids of the orders follow their commits. Explanations rest on both.
// LAST_INSERT_ID(expr) returns the new stock in the answer to the UPDATE, so no SELECT is sent
// under the lock.
package strategy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stocklock/internal/stock"
)

// Strategy is one way to protect a sale.
type Strategy struct {
	Name string // the value of the flag
	Doc  string // one line: what it does
	// Mixable says that other writers of the item may run meanwhile, if they raise its version:
	// other mixable strategies, and changes such as a restock. The stock is in the item's row.
	Mixable bool
	// Baskets says that the strategy sells several items in one sale. Without it, it refuses that.
	Baskets bool
	// NeedsQuorum says that the strategy needs several independent Redis servers: Deps.Quorum.
	NeedsQuorum bool
	// WithoutRedis says that a sale uses no Redis. A shop then starts, is ready and sells without it.
	WithoutRedis bool
	// FindsRepeats says that a sale under the idempotency key of an order costs others nothing, and is refused
	// with [stock.ErrRepeated]. A shop does not look for the order before the sale then.
	FindsRepeats bool
	// RefusesEarly says that a sale whose item had too few units, or whose customer was at the limit, first looks
	// without any lock whether that is still so. The strategy looks by itself where it sells in batches.
	RefusesEarly bool
	// ShortestLease is the shortest lease that the lock can have. 0 means any.
	ShortestLease time.Duration

	// LockKey names the lock of a sale. Nil means the [sale.Key] of its item.
	LockKey func(stock.Sale) string
	// Build makes the guard and the decrement that one [Seller] uses.
	Build func(Deps) (Guard, Decrement)
}

// Guard protects a section. It is safe for concurrent use.
type Guard interface {
	// Do runs fn while it holds key. It returns fn's error, ErrBusy, or an error of the lock. The
	// token is the lock's fencing token, or 0 if it has none. The context held ends when the guard
	// knows that the lock is lost. It also serves reentrancy.
	Do(ctx context.Context, key string, fn func(held context.Context, token int64) error) error
}

// Unguarded is the guard that lets every sale in.
type Unguarded struct{}

// Do runs fn at once.
func (Unguarded) Do(ctx context.Context, _ string, fn func(context.Context, int64) error) error {
	return fn(ctx, 0)
}

// Decrement makes the sale inside the section and records its order.
type Decrement func(ctx context.Context, store *stock.Store, sale stock.Sale) (stock.Order, error)

// Deps are the dependencies of strategies. The caller closes the clients and the store.
type Deps struct {
	Locks
	Store *stock.Store
	// Batched is called for each batch of the strategy batched, with the number of its sales and
	// the wait of the first. It may be nil.
	Batched func(size int, waited time.Duration)
	// Now is the process's clock, for strategies that compare times. Nil means time.Now.
	Now func() time.Time
	Options

	refusals *refusals // of one [Seller]
}

// Options are the settings that all strategies share. Set each: for package redislock, a zero Lease is its default, and a
// zero Wait has no end; without a lock, a zero Wait is none.
type Options struct {
	Lease time.Duration // how long a lock lives in Redis without renewal
	// Wait is how long to wait for a lock before ErrBusy. Without one, it is how long to wait for a connection, and to
	// repeat what lost against another transaction.
	Wait  time.Duration
	Retry time.Duration // pause between two tries of a lock that polls, and before such a repeat
}

// Check returns an error if d lacks a dependency of the strategy.
func (s Strategy) Check(d Deps) error {
	if d.Lease < s.ShortestLease {
		return fmt.Errorf("strategy %s needs a lease of %s or more, and --lease (SHOP_LEASE) is %s", s.Name, s.ShortestLease, d.Lease)
	}
	return d.Locks.check(s)
}

// ErrOneItem means that the strategy sells no baskets.
var ErrOneItem = errors.New("strategy: it sells one item at a time")

// ErrBusy means that the lock, or a connection to the database, was not free within the time to
// wait. Nothing was written.
var ErrBusy = errors.New("strategy: lock is busy")

// production lists the strategies that are fit for production.
var production = []Strategy{
	fenced,
	fencedRelative,
	forUpdate,
	optimistic,
	conditional,
	batched,
}

// All returns the strategies that are fit for production.
func All() []Strategy { return slices.Clone(production) }

// leftOut names those that this copy of the shop was made without.
var leftOut []string

// FitForProduction reports whether a strategy of that name is fit for production, be it in this copy of the shop or not.
// Its stock is in the item's row.
func FitForProduction(name string) bool {
	return slices.Contains(append(Names(production), leftOut...), name)
}

// Names returns the names of strategies.
func Names(of []Strategy) []string {
	names := make([]string, len(of))
	for i, s := range of {
		names[i] = s.Name
	}
	return names
}

// Find returns the strategy of that name. The error lists all names.
func Find(name string, among []Strategy) (Strategy, error) {
	for _, s := range among {
		if s.Name == name {
			return s, nil
		}
	}
	return Strategy{}, fmt.Errorf("no strategy %q: want one of %s", name, strings.Join(Names(among), ", "))
}
