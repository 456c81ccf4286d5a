// Package scenario holds what is done to the system while it sells.
//
// Each scenario attacks one property of the strategies. It is one file and one
// line in all.go: what requests carry, what the rig does to servers when such a
// request has come to its point, and nothing about who should survive it. That
// follows from the properties: see [Scenario.Expected].
package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"stocklock/internal/lab/rig"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy"
)

// Scenario is one way in which things go wrong.
type Scenario struct {
	Name    string            // the value of the flag
	Doc     string            // one line: what it does
	Attacks strategy.Property // whoever lacks it fails
	Needs   Need
	// ShortWait: it shows something only where the wait for the lock is shorter than the lease.
	ShortWait bool
	// Plan makes the schedule of one run. The same seed makes the same schedule.
	Plan func(rng *rand.Rand, lease time.Duration) Plan
}

// Need is what a scenario must be able to command.
type Need int

const (
	// Headers: what a request carries is enough.
	Headers Need = iota
	// Rig: servers and processes must be the rig's own.
	Rig
)

// Plan is the schedule of one run. Nil functions do nothing.
type Plan struct {
	// Injection says what the n-th request carries, counted from 0.
	Inject func(n int) Injection
	// Prepare sets the testbed up before the first request.
	Prepare func(ctx context.Context, testbed *rig.Testbed) error
	// Strike is done to the testbed when a request with a fault has come to its
	// point, and Relieve when its answer is there. Shop is the index of the shop
	// that serves it.
	Intervene func(ctx context.Context, testbed *rig.Testbed, shop int) error
	Relieve   func(ctx context.Context, testbed *rig.Testbed, shop int) error
	// Restore takes back Prepare, after the last request.
	Restore func(ctx context.Context, testbed *rig.Testbed) error
	// Intervention says in a few words what Strike does, or else Prepare.
	Intervention string
}

// Injection is what a request carries. The zero value is an ordinary sale.
type Injection struct {
	Fault  labmode.Fault // none for the zero value
	Nested bool          // take the lock a second time
	// Work is work at the point read on top of the usual, where no fault is: it
	// makes it certain that somebody is in the section when a late holder comes back.
	Work time.Duration
	// Alone keeps other requests away from the shop that serves this one until it has
	// answered: a fault that takes the whole shop down must not take all the demand down with it.
	Alone bool
}

// HasFault says whether the request carries a fault.
func (c Injection) HasFault() bool { return c.Fault != labmode.Fault{} }

// Expected is what a strategy with these properties does under the scenario.
func (s Scenario) Expected(p strategy.Properties) Kind {
	heldIf := func(has bool, otherwise Kind) Kind {
		if has {
			return Held
		}
		return otherwise
	}
	stored := p.Meets(strategy.StorageChecked)
	switch {
	case s.Attacks == strategy.Reentrant && !p.Meets(strategy.Reentrant):
		return Stuck
	case !p.Meets(strategy.Exclusive):
		return Oversold
	}
	switch s.Attacks {
	case strategy.Exclusive, strategy.Reentrant:
		return Held
	case strategy.Recovers:
		return heldIf(p.Meets(strategy.Recovers), Stuck)
	case strategy.AtomicLease:
		return heldIf(p.Meets(strategy.Recovers|strategy.AtomicLease), Stuck)
	case strategy.LossAware:
		if !p.Meets(strategy.Recovers) {
			return Stuck // the release is lost with the connection
		}
		return heldIf(p.Meets(strategy.LossAware) || stored, Oversold)
	case strategy.AtomicRelease:
		return heldIf(p.Meets(strategy.OwnerChecked|strategy.AtomicRelease) || stored, Oversold)
	default:
		return heldIf(p.Meets(s.Attacks) || stored, Oversold)
	}
}

// Because says in a few words why [Scenario.Expected] is what it is: which property the strategy
// has or lacks, or which one does not apply to it.
func (s Scenario) Because(p strategy.Properties) string {
	decisive := s.Attacks
	switch {
	case decisive == strategy.Reentrant && !p.Meets(strategy.Reentrant):
	case !p.Meets(strategy.Exclusive):
		decisive = strategy.Exclusive
	case decisive == strategy.AtomicLease || decisive == strategy.LossAware:
		if !p.Meets(strategy.Recovers) {
			decisive = strategy.Recovers
		}
	case decisive == strategy.AtomicRelease && !p.Meets(strategy.OwnerChecked):
		decisive = strategy.OwnerChecked
	}
	switch p.Standing(decisive) {
	case strategy.Has:
		return "has " + decisive.String()
	case strategy.NotApplicable:
		return decisive.String() + " does not apply"
	}
	if s.Expected(p) == Held {
		return "has " + strategy.StorageChecked.String()
	}
	return "lacks " + decisive.String()
}

// Kind is the word of a verdict.
type Kind string

const (
	Held     Kind = "held"     // exactly what there was to sell was sold
	Oversold Kind = "oversold" // more was sold
	Stuck    Kind = "stuck"    // stock and demand were left, and nothing sold any more
	Invalid  Kind = "invalid"  // the harness failed, which says nothing about the strategy
	Skipped  Kind = "skipped"  // the scenario cannot be run here
)

// All returns the scenarios, in the order of the tables.
func All() []Scenario { return slices.Clone(all) }

// Names returns the names of all scenarios.
func Names() []string {
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = s.Name
	}
	return names
}

// ByName finds a scenario.
func ByName(name string) (Scenario, error) {
	for _, s := range all {
		if s.Name == name {
			return s, nil
		}
	}
	return Scenario{}, fmt.Errorf("no scenario %q: want one of %s", name, strings.Join(Names(), ", "))
}
