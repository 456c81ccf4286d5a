package trial

import (
	"context"
	"slices"
	"time"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/topology"
	"stocklock/internal/strategy/declared"
)

// Scenario is one way in which things go wrong. Package scenario lists all.
type Scenario struct {
	Name string // the value of the flag
	Doc  string // one line: what it does
	// Group is where it plays: [OneServer], [Baskets], [Reservations], [Described] or the name of its Topology.
	Group    string
	Topology *topology.Topology // its database, where that is no single server which the run has

	Attacks declared.Property // a strategy without it fails; 0 attacks the topology alone
	// Demands are what a strategy must have to hold, in the order in which their lack shows. Nil
	// is the usual: without Exclusive or what is attacked, a strategy oversells.
	Demands []Demand
	Needs   Need
	// ShortWait scenarios show something only where the wait for the lock is shorter than the
	// lease.
	ShortWait bool
	// Comparable scenarios inject nothing and intervene in nothing: the numbers of strategies may
	// be compared. It also means that no proxy stands between the shops and their Redis, and that the number of
	// requests is fixed. The others go on until all is sold.
	Comparable bool
	// Crowd is what goes wrong while a crowd buys one item. The zero value is nothing.
	Crowd Play
	// Few is what a few customers do in place of a crowd, each when the one before was seen.
	Few func(ctx context.Context, g *Group) error
	// Only are the strategies with which it is a cell, by name; nil for all. Of the others, another scenario of the
	// topology decides the same.
	Only []string
	// Stock is that of each item of a scenario for a few; Named says that the order of the items' names is not that of
	// their ids.
	Stock []int64
	Named bool
}

// The groups of scenarios besides those of the topologies.
const (
	OneServer    = ""
	Baskets      = "baskets"
	Reservations = "reservations"
	Described    = "described" // a service that a file describes
)

// OfBaskets reports whether customers buy several items.
func (s Scenario) OfBaskets() bool { return s.Group == Baskets }

// OfReservations reports whether customers reserve units and pay for them.
func (s Scenario) OfReservations() bool { return s.Group == Reservations }

// Applies reports whether a strategy is a cell of the scenario.
func (s Scenario) Applies(to declared.Strategy) bool {
	switch {
	case s.OfBaskets():
		return to.Baskets != nil
	case s.OfReservations():
		return to.Reservations != nil
	}
	return !to.Special() && (s.Only == nil || slices.Contains(s.Only, to.Name))
}

// Need is what a scenario must be able to control.
type Need int

const (
	// Headers scenarios need only the headers of a request.
	Headers Need = iota
	// Rig scenarios need servers and processes that the rig has started.
	Rig
)

// Settings are those of the shops that a scenario for a few needs.
type Settings struct {
	Shops              int
	Lease, Wait, Retry time.Duration
	Env                func(shop int) map[string]string // their further SHOP_ variables; may be nil
}

// Settings returns those of the scenario's group. No lease of a few ends but that of a play, and a customer who is kept
// out is refused while the play goes on.
func (s Scenario) Settings() Settings {
	switch s.Group {
	case Baskets:
		return Settings{Shops: 3, Lease: 10 * time.Second, Wait: time.Second}
	case Reservations:
		return Settings{Shops: 3, Lease: 10 * time.Second, Wait: time.Second, Env: reserving}
	default: // the sale that is held has the longest lease there is, and nobody waits for that
		return Settings{Shops: topology.Shops, Lease: 4 * time.Second, Wait: time.Second, Retry: 2 * time.Millisecond}
	}
}

// TakesLate is the index of the shop that takes late payments if their units are free. The others of the group return
// them.
const TakesLate = 2

// reserving has the settings of a shop with reservations.
func reserving(shop int) map[string]string {
	env := load.Reservations()
	if shop == TakesLate {
		env["SHOP_LATE_PAYMENT"] = "take-if-free"
	}
	return env
}
