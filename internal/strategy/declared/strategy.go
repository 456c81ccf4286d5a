// Package declared has what strategies declare: their properties by effect, and what the lab must know
// to attack and to count their sales.
//
// A shop with the tag lab prints the declarations of its strategies. The lab knows nothing else of them. So
// the package imports neither Redis nor SQL.
//
// # Decisions
//
// A strategy is not exclusive if two sales act on one stock, however right its lock is. The
// property is an effect. The guard of such a strategy still reaches across processes: explanations
// go by the server that keeps its lease.
//
// A strategy may keep state besides the item's row. It declares how to prepare the state of a new
// item, and a SELECT that counts the units in it. The audit prepares the item of each run, and adds
// these units to the stock that is left. Workers run from the creation of the strategy's seller
// until it is closed (ladder.Workers).
package declared

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stocklock/internal/sale"
)

// Strategy is what a strategy declares, in the form that shop strategies --json prints. The first fields,
// up to ShortestLease, say what the shop itself has of it.
type Strategy struct {
	Name       string `json:"name"`
	Doc        string `json:"doc"`                  // one line: what it does
	Production bool   `json:"production,omitempty"` // it is fit for production
	// Mixable says that other writers of the item may run meanwhile: see package strategy.
	Mixable bool `json:"mixable,omitempty"`
	// NeedsQuorum says that the strategy needs several independent Redis servers.
	NeedsQuorum bool `json:"needs_quorum,omitempty"`
	// ShortestLease is in nanoseconds. 0 means any.
	ShortestLease time.Duration `json:"shortest_lease,omitempty"`

	Source    string `json:"source"`    // one line: where the recipe comes from
	Guard     string `json:"guard"`     // the guard in a few words, in Redis's own commands
	Decrement string `json:"decrement"` // the decrement in a few words
	Telling   string `json:"telling"`   // the scenario that shows most about the strategy
	Properties
	// WithOneProcess and WithSnapshotIsolation have the further properties under these [Circumstances].
	WithOneProcess        Property `json:"with_one_process,omitempty"`
	WithSnapshotIsolation Property `json:"with_snapshot_isolation,omitempty"`
	// Baskets has what is declared of sales of several items, nil for a strategy that makes none.
	Baskets *Properties `json:"baskets,omitempty"`
	// OnlyBaskets says that the strategy is compared with others only by sales of several items.
	OnlyBaskets bool `json:"only_baskets,omitempty"`
	// Reservations has what is declared of reservations, nil for a strategy that makes none.
	Reservations *Properties `json:"reservations,omitempty"`
	// OnlyReservations says that the strategy is compared with others only by reservations.
	OnlyReservations bool `json:"only_reservations,omitempty"`
	// Servers are the properties that the strategy has where the database is more than one server. It lacks
	// the others of [TopologyProperties].
	Servers Property `json:"servers,omitempty"`
	// NeedsEtcd says that the lock is in etcd, at the addresses of SHOP_ETCD.
	NeedsEtcd bool `json:"needs_etcd,omitempty"`
	// NeedsCommand has commands of Redis, with the servers that know each, such as "DELEX (Redis 8.4)". The
	// strategy needs one of them. A server that knows none of them cannot run it.
	NeedsCommand []string `json:"needs_command,omitempty"`
	// OwnClient says that the lock has a client of its own, so its requests cannot be held one by one.
	OwnClient bool `json:"own_client,omitempty"`
	// AnswersFirst says that a sale is answered before its order is written.
	AnswersFirst bool `json:"answers_first,omitempty"`
	// ReleasesFirst says that a sale releases its lock before its order is committed.
	ReleasesFirst bool `json:"releases_first,omitempty"`
	// Scripts names scripts by their SHA-1, for stepping through a sale. A script without a name is
	// called acquire before the section and release after it.
	Scripts map[string]string `json:"scripts,omitempty"`
	// ByChance says that the strategy makes random choices, so the requests of a sale differ each time.
	ByChance bool `json:"by_chance,omitempty"`
	// Starves says that sales that meet end each other's tries, and that nothing orders their repeats. Demand
	// may be left where a load ends, or where so many customers were sent away in a row.
	Starves bool `json:"starves,omitempty"`
	// Background says that goroutines beside the sales write the orders.
	Background bool  `json:"background,omitempty"`
	State      State `json:"state,omitzero"`
	// Lease is declared where the end of the lock is neither the expiry of a key in Redis nor a lease of
	// etcd. A shop prints that of every strategy.
	Lease Lease `json:"lease,omitzero"`
	// WaitsInMySQL says that a sale that is kept out waits inside MySQL, where the lock tables show it.
	// Without a lock in Redis besides, it passes the point waiting only if MySQL ends its wait with a
	// conflict, or if no connection is free. Points leaves waiting out then.
	WaitsInMySQL bool `json:"waits_in_mysql,omitempty"`
	// Points are those that a sale can pass, in the order in which it passes them first. None stands
	// for all. A sale that is not refused does not pass waiting. Points after answered are passed in
	// the background.
	Points []sale.Point `json:"points,omitempty"`
	// Inapplicable has the scenarios that say nothing about the strategy, by name, with the reason.
	Inapplicable map[string]string `json:"inapplicable,omitempty"`
}

// State is what a strategy keeps of an item besides the item's row and its lock. The zero value
// keeps nothing.
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
	// Locks are the keys of the lock in Redis, with %s for the item's [sale.Key]. Empty means that the
	// lock is under that key itself.
	Locks []string `json:"locks,omitempty"`
	// Keys are the keys in Redis, with %s for the item's key. RareKeys are used less often than Keys, so a
	// Redis that runs out of memory evicts them first.
	Keys     []string `json:"keys,omitempty"`
	RareKeys []string `json:"rare_keys,omitempty"`
	// Copies are the keys in Redis with copies of the item's row, with %s for the item's key.
	Copies []string `json:"copies,omitempty"`
}

// Scattered reports whether units are in several rows, such as those that a sale holds for a while.
func (s State) Scattered() bool { return s.Remaining != "" && !s.Whole }

// Elsewhere reports whether units are in several rows, or counted in Redis. What an order has read and written is then
// not the stock that there was.
func (s State) Elsewhere() bool { return s.Scattered() || len(s.Keys) > 0 }

// KeysOf returns keys of a [State] for an item.
func KeysOf(keys []string, itemID uint64) []string {
	of := make([]string, len(keys))
	for i, key := range keys {
		of[i] = strings.ReplaceAll(key, "%s", sale.Key(itemID))
	}
	return of
}

// Lease says where a server keeps the end of a lock. The zero value is a lock without a lease: only
// its release ends it, or the end of its holder's process or connection.
type Lease struct {
	Kept LeaseHome `json:"kept"`
	// Unit is the unit of a [LeaseInValue], in nanoseconds.
	Unit time.Duration `json:"unit,omitempty"`
	// Query is the SELECT of a [LeaseInMySQL]. Its one parameter is the item's id. It returns how many
	// milliseconds are left of the lease that ends first, by the clock of MySQL: less than 0 if it is
	// over, NULL if there is none.
	Query string `json:"query,omitempty"`
}

// LeaseHome is where the end of a lock is kept.
type LeaseHome string

const (
	NoLease       LeaseHome = ""
	LeaseInExpiry LeaseHome = "redis-expiry" // the expiry of the lock's keys: see State.Locks
	LeaseInValue  LeaseHome = "redis-value"  // the value of the lock's key: a time since 1970
	LeaseInEtcd   LeaseHome = "etcd"         // the lease of the first key below the lock's key
	LeaseInMySQL  LeaseHome = "mysql"        // a row
)

// Passes reports whether a sale of the strategy can pass a point.
func (s Strategy) Passes(p sale.Point) bool {
	return len(s.Points) == 0 || slices.Contains(s.Points, p)
}

// Counts reports whether the strategy counts the units of an item in Redis.
func (s Strategy) Counts() bool { return len(s.State.Keys) > 0 }

// AtPoints reports whether a sale is stepped through where it acquires and releases, and not at
// each request of its lock. Such a lock has a client of its own, or asks several servers at once.
func (s Strategy) AtPoints() bool { return s.OwnClient || s.NeedsQuorum }

// Everywhere returns the properties of sales of one item, with those that databases of several servers attack.
func (s Strategy) Everywhere() Properties {
	return Properties{Has: s.Has | s.Servers, NotApplicable: s.NotApplicable}
}

// Circumstances are what decides, besides the strategy, what is expected of it.
type Circumstances struct {
	OneProcess bool // no other process sells
	// SnapshotIsolation says that the database is a MariaDB with innodb_snapshot_isolation, which refuses to
	// write over a row that has changed since the snapshot of the transaction.
	SnapshotIsolation bool
}

// Special reports whether the strategy is compared with others only by sales of several items, or by reservations.
func (s Strategy) Special() bool { return s.OnlyBaskets || s.OnlyReservations }

// Under returns the strategy with the properties that it has under these circumstances.
func (s Strategy) Under(c Circumstances) Strategy {
	if c.OneProcess {
		s.Properties.Has |= s.WithOneProcess
	}
	if c.SnapshotIsolation {
		s.Properties.Has |= s.WithSnapshotIsolation
	}
	return s
}

// MarshalJSON writes the names of the properties in the set, as a list.
func (p Property) MarshalJSON() ([]byte, error) { return json.Marshal(p.names()) }

// UnmarshalJSON reads a list of names. The error lists all names.
func (p *Property) UnmarshalJSON(text []byte) error {
	var names []string
	if json.Unmarshal(text, &names) != nil {
		return errors.New("properties are to be a list of names")
	}
	*p = 0
	for _, name := range names {
		one, err := propertyNamed(name)
		if err != nil {
			return err
		}
		*p |= one
	}
	return nil
}

func (p Property) names() []string {
	names := []string{}
	for _, q := range properties {
		if p.Includes(q.Property) {
			names = append(names, q.name)
		}
	}
	return names
}

func propertyNamed(name string) (Property, error) {
	var all []string
	for _, q := range properties {
		if q.name == name {
			return q.Property, nil
		}
		all = append(all, q.name)
	}
	return 0, fmt.Errorf("no property %q: want one of %s", name, strings.Join(all, ", "))
}
