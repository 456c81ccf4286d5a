// Package peers has the locks of other libraries as strategies. They run under the same scenarios as
// this repository's own, in a shop that the main in bench/peershop builds.
//
// Each library is one file. Its settings are those of its documentation, except that the lease, the
// wait and the pause between two tries are the lab's, as they are for every strategy. What is declared
// of a library is what its documentation lets a user expect.
package peers

import "stocklock/internal/strategy"

// Peer is a library's lock as a strategy, and what its documentation says.
type Peer struct {
	strategy.Strategy
	Module string // whose version is reported
	Bench  string // what package lock of the bench calls it; empty where it is not measured there
	// Notes are by the names of the scenarios that break it.
	Notes map[string]Note
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

// All returns the peers. The settings are read when a strategy is built.
func All(s *Settings) []Peer {
	return []Peer{redsyncOne}
}

// Strategies returns the peers as strategies.
func Strategies(s *Settings) []strategy.Strategy {
	var all []strategy.Strategy
	for _, p := range All(s) {
		all = append(all, p.Strategy)
	}
	return all
}
