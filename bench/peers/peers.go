// Package peers has the locks of other libraries as strategies. They run under the same scenarios as
// this repository's own, in a shop that the main in bench/peershop builds.
//
// Each library is one file. Its settings are those of its documentation, except that the lease and the
// wait are the lab's, as they are for every strategy, and so is the pause of bsm-redislock between two
// tries. What is declared of a library is what its documentation lets a user expect.
package peers

import (
	"stocklock/bench/lock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/strategy/ladder"
)

// Peer is a library's lock as a strategy, and what its documentation says.
type Peer struct {
	ladder.Rung
	Module string // whose version is reported
	// Notes are by the names of the scenarios that break it.
	Notes   map[string]Note
	Besides string // what else the runs show; empty for nothing
}

// Note is what a library's documentation says of something that breaks it.
type Note struct {
	Says  string // a quotation, or that the documentation says nothing
	Where string // the page or file of the quotation
	Mend  string // the setting or usage that mends it; empty without one
}

// Settings are the flags that the strategies here need, in kong's form.
type Settings struct {
	Etcd []string `env:"SHOP_ETCD" placeholder:"HOST:PORT" help:"Where etcd is, for the strategies with its lock."`
}

// ownClock is why no library is run under clock-skew.
const ownClock = "the lab moves the clock that a strategy asks, and the library asks the system's"

// asksItself has the scenarios that say nothing about any library.
var asksItself = map[string]string{
	"nested":     "its documentation does not say that a holder may acquire its lock again",
	"clock-skew": ownClock,
}

const distlock = "[Distributed Locks with Redis](https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/), to which the library's README refers"

// fencing is what is said of a holder that is stopped past its lease.
var fencing = Note{
	Says: "You should implement fencing tokens. This is especially important for processes that can take significant time " +
		"and applies to any distributed locking system.",
	Where: distlock,
	Mend: "none in the library, which has no token: a write that the database can refuse, such as [fenced](mistakes/holds.md#fenced), " +
		"or one that subtracts, such as [conditional](mistakes/holds.md#conditional)",
}

// oneRedis is what is said of the loss of the one server.
func oneRedis(mend string) Note {
	return Note{
		Says:  "Superficially this works well, but there is a problem: this is a single point of failure in our architecture.",
		Where: distlock,
		Mend:  mend,
	}
}

// under declares read-then-write under a library's lock, of which its documentation does not say that a
// holder may acquire it again.
func under(l lock.Lock, doc string, d declared.Strategy) ladder.Rung {
	d.Decrement, d.NotApplicable = "read-then-write", declared.Reentrant
	if d.Inapplicable == nil {
		d.Inapplicable = asksItself
	}
	return ladder.Declare(strategy.Strategy{Name: l.Name, Doc: doc, NeedsQuorum: l.Quorum > 0,
		Build: func(d strategy.Deps) (strategy.Guard, strategy.Decrement) {
			return guardOf(l, d, lock.Config{}), strategy.ReadThenWrite
		}}, d)
}

// All returns the peers. The settings are read when a strategy is built.
func All(s *Settings) []Peer {
	return []Peer{redsyncOne, redsyncFive, bsm, rueidisOne, rueidisTwo, etcdPlain(s), etcdFenced(s)}
}

// Compared returns the peers, and this repository's lock: its strategies have a name here, and are built
// by the lab.
func Compared() []Peer { return append(All(&Settings{}), ours()...) }

// Strategies returns the peers as strategies.
func Strategies(s *Settings) []ladder.Rung {
	var all []ladder.Rung
	for _, p := range All(s) {
		all = append(all, p.Rung)
	}
	return all
}

func named(name string) ladder.Rung {
	return ladder.Declare(strategy.Strategy{Name: name}, declared.Strategy{})
}

// ours returns this repository's lock, alone and with its token compared by the database: strategies of
// the lab's shop.
func ours() []Peer {
	return []Peer{
		{Rung: named("reentrant"), Notes: map[string]Note{
			"failover":      lostWrite("a planned failover (FAILOVER, CLUSTER FAILOVER), which waits for the replica, or the token: [fenced](#fenced)"),
			"redis-restart": lostWrite("a Redis that keeps what it has acknowledged (appendonly yes, appendfsync always), or the token: [fenced](#fenced)"),
			"eviction":      lostWrite("maxmemory-policy noeviction, or the token: [fenced](#fenced)"),
			"pause":         notGiven("exclusion over a holder that is paused between its last look at the context and its write.", "the token: [fenced](#fenced)"),
		}},
		{Rung: named("fenced")},
	}
}

func lostWrite(mend string) Note {
	return notGiven("exclusion when Redis loses a write that it had acknowledged: a restart without data, a failover to a replica that was "+
		"behind, an eviction for lack of memory. Two processes can then hold the lock.", mend)
}

func notGiven(says, mend string) Note {
	return Note{Says: says, Where: "[guarantees](guarantees.md), under what the lock does not give", Mend: mend}
}
