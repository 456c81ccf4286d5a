// Package strategy defines strategies, and has those that are fit for production.
//
// A strategy is a guard and a decrement. The guard decides which sale may enter the section: it is
// a lock, or nothing. The decrement writes the stock: it reads, computes in Go and writes back, or
// lets the database compute. Each strategy is one file and one line in [All], and declares its
// properties. The expected verdict under each scenario follows from them.
//
// The strategies that break are in package ladder, which only the lab imports.
package strategy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/redislock"
	"stocklock/internal/stock"
)

// Strategy is one way to protect a sale.
type Strategy struct {
	Name       string // the value of the flag
	Doc        string // one line: what it does
	Source     string // one line: where the recipe comes from
	Guard      string // the guard in a few words, in Redis's own commands
	Decrement  string // the decrement in a few words
	Telling    string // the scenario that shows most about the strategy
	Properties Properties
	// WithOneProcess has the further properties when Options.OneProcess is on.
	WithOneProcess Property
	// WithSnapshotIsolation has those when Options.SnapshotIsolation is on.
	WithSnapshotIsolation Property
	// Mixable says that other writers of the item may run meanwhile, if they raise its version:
	// other mixable strategies, and changes such as a restock. The stock is in the item's row.
	Mixable bool
	// Baskets has the basket properties of a strategy that sells several items in one sale. Nil means that
	// it refuses that.
	Baskets *Properties
	// Servers are the properties that the strategy has where the database is more than one server. It lacks the
	// others of [TopologyProperties].
	Servers Property
	// OnlyBaskets says that the strategy is compared with others only by sales of several items.
	OnlyBaskets bool
	// NeedsQuorum says that the strategy needs several independent Redis servers: Deps.Quorum.
	NeedsQuorum bool
	// NeedsEtcd says that the lock is in etcd, at the addresses of SHOP_ETCD.
	NeedsEtcd bool
	// NeedsCommand has commands of Redis, with the servers that know each, such as "DELEX (Redis 8.4)". The
	// strategy needs one of them. A server that knows none of them cannot run it.
	NeedsCommand []string
	// WithoutRedis says that a sale uses no Redis. A shop then starts, is ready and sells without it.
	WithoutRedis bool
	// FindsRepeats says that the strategy looks for an order under a sale's idempotency key before it sells,
	// and then refuses the sale with [stock.ErrRepeated]. A shop does not look for the order itself then.
	FindsRepeats bool
	// OwnClient says that the lock has a client of its own, so its requests cannot be held one by
	// one.
	OwnClient bool
	// ShortestLease is the shortest lease that the lock can have. 0 means any.
	ShortestLease time.Duration
	// Inapplicable has the scenarios that say nothing about the strategy, by name, with the reason.
	Inapplicable map[string]string

	// LockKey names the lock of a sale. Nil means the [Key] of its item.
	LockKey func(stock.Sale) string
	// Lease is where the end of the lock is kept, where that is neither the expiry of a key in Redis nor
	// a lease of etcd. [Strategy.Describe] has the lease of every strategy.
	Lease Lease
	// WaitsInMySQL says that a sale that is kept out waits inside MySQL, where the lock tables show it.
	// Without a lock in Redis besides, it passes the point waiting only if MySQL ends its wait with a
	// conflict.
	WaitsInMySQL bool

	// State is what the strategy keeps of an item besides the item's row and its lock.
	State State
	// AnswersFirst says that a sale is answered before its order is written.
	AnswersFirst bool
	// ReleasesFirst says that a sale releases its lock before its order is committed.
	ReleasesFirst bool
	// ByChance says that the strategy makes random choices, so the requests of a sale differ each
	// time.
	ByChance bool
	// Scripts names scripts by their SHA-1, for stepping through a sale. A script without a name is
	// called acquire before the section and release after it.
	Scripts map[string]string
	// View makes what shows an item to customers, where the strategy keeps a copy of the item's row for
	// them. Only a shop in the lab shows items by it. Without it, FreshRead does not apply.
	View func(Deps) View
	// Background says that goroutines beside the sales write the orders.
	Background bool

	// Build makes the guard and the decrement that one [Seller] uses.
	Build func(Deps) (Guard, Decrement)
}

// State is what a strategy keeps of an item besides the item's row and its lock. The zero value
// keeps nothing. A program that creates or restocks items for a strategy, such as the lab, must call
// Prepare.
// All of State is text, so that the lab knows it from a [Description].
type State struct {
	// Setup has the statements that move the units of the item's own row to where the strategy sells
	// them: those of a new item, and those of a restock. The one parameter of each is the item's id.
	Setup []string `json:"setup,omitempty"`
	// Remaining is a SELECT that counts the units in those rows, besides the units of the item's
	// own row. Its one parameter is the item's id. Empty means none.
	Remaining string `json:"remaining,omitempty"`
	// Whole says that Remaining counts one stock from which all units are sold, as they are elsewhere
	// from the item's row: an order has read and written that stock. Time changes nothing in it.
	Whole bool `json:"whole,omitempty"`
	// Sum says that a sale appends a row to those that Remaining sums up. No sale then overwrites another,
	// and only the last units can be sold twice.
	Sum bool `json:"sum,omitempty"`
	// Locks are the keys of the lock in Redis, with %s for the item's [Key]. Empty means that the
	// lock is under that key itself.
	Locks []string `json:"locks,omitempty"`
	// Keys are the keys in Redis, with %s for the item's [Key]. RareKeys are used less often than
	// Keys, so a Redis that runs out of memory evicts them first.
	Keys     []string `json:"keys,omitempty"`
	RareKeys []string `json:"rare_keys,omitempty"`
	// Copies are the keys in Redis with copies of the item's row, with %s for the item's [Key].
	Copies []string `json:"copies,omitempty"`
}

// Scattered reports whether units are in several rows, such as those that a sale holds for a while.
func (s State) Scattered() bool { return s.Remaining != "" && !s.Whole }

// Prepare makes the units of the item's row ready to be sold.
func (s State) Prepare(ctx context.Context, store *stock.Store, itemID uint64) error {
	if len(s.Setup) == 0 {
		return nil
	}
	return store.Transact(ctx, func(tx stock.Tx) error {
		for _, statement := range s.Setup {
			if _, _, err := tx.Exec(statement, itemID); err != nil {
				return err
			}
		}
		return nil
	})
}

// KeysOf returns keys of a [State] for an item.
func KeysOf(keys []string, itemID uint64) []string {
	of := make([]string, len(keys))
	for i, key := range keys {
		of[i] = strings.ReplaceAll(key, "%s", Key(itemID))
	}
	return of
}

// Guard protects a section. It is safe for concurrent use.
type Guard interface {
	// Do runs fn while it holds key. It returns fn's error, ErrBusy, or an error of the lock. The
	// token is the lock's fencing token, or 0 if it has none. The context held ends when the guard
	// knows that the lock is lost. It also serves reentrancy.
	Do(ctx context.Context, key string, fn func(held context.Context, token int64) error) error
}

// Decrement makes the sale inside the section and records its order.
type Decrement func(ctx context.Context, store *stock.Store, sale stock.Sale) (stock.Order, error)

// View shows an item. It passes the points of a page view.
type View func(ctx context.Context, itemID uint64) (stock.Item, error)

// Deps are the dependencies of strategies. The caller closes the clients and the store.
type Deps struct {
	Redis redis.UniversalClient
	// Quorum has independent servers, for the strategies that need them.
	Quorum []redis.UniversalClient
	Store  *stock.Store
	// Hooks are called for locks of package redislock.
	Hooks redislock.Hooks
	// Batched is called for each batch of the strategy batched, with the number of its sales and
	// the wait of the first. It may be nil.
	Batched func(size int, waited time.Duration)
	// Now is the process's clock, for strategies that compare times. Nil means time.Now.
	Now func() time.Time
	Options
}

// Options are the settings that all locks share.
type Options struct {
	Lease time.Duration // how long a lock lives in Redis without renewal
	Wait  time.Duration // how long to wait for a lock before ErrBusy
	Retry time.Duration // pause between two tries of a lock that polls

	// OneProcess says that no other process sells. SnapshotIsolation says that the database is a MariaDB
	// with innodb_snapshot_isolation, which refuses to write over a row that has changed since the snapshot
	// of the transaction. Both change only the expected verdicts.
	OneProcess, SnapshotIsolation bool
}

// Check returns an error if d lacks a dependency of the strategy.
func (s Strategy) Check(d Deps) error {
	switch {
	case s.NeedsQuorum && len(d.Quorum) == 0:
		return fmt.Errorf("strategy %s needs several independent Redis servers: set --redis-quorum (SHOP_REDIS_QUORUM)", s.Name)
	case d.Lease < s.ShortestLease:
		return fmt.Errorf("strategy %s needs a lease of %s or more, and --lease (SHOP_LEASE) is %s", s.Name, s.ShortestLease, d.Lease)
	}
	return nil
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
