// Package scenario has the faults and loads under which the shops sell.
//
// Each scenario attacks one property of the strategies. It is one file and one line in all.go. The
// file says which faults requests carry, and which intervention the rig makes when such a request
// reaches its point. It does not say which strategies should hold. That follows from their
// properties: see [Scenario.Expected].
package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/shop/labmode"
	"stocklock/internal/strategy"
)

// Scenario is one way in which things go wrong.
type Scenario struct {
	Name    string            // the value of the flag
	Doc     string            // one line: what it does
	Attacks strategy.Property // a strategy without it fails
	Needs   Need
	// ShortWait scenarios show something only where the wait for the lock is shorter than the
	// lease.
	ShortWait bool
	// Comparable scenarios inject nothing and intervene in nothing: the numbers of strategies may
	// be compared. It also means that no proxy stands between the shops and their Redis.
	Comparable bool
	// FixedLoad scenarios send a fixed number of requests. The others go on until all is sold.
	FixedLoad bool
	// Plan makes the schedule of one run. The same seed makes the same schedule.
	Plan func(rng *rand.Rand, lease time.Duration) Plan
}

// Need is what a scenario must be able to control.
type Need int

const (
	// Headers scenarios need only the headers of a request.
	Headers Need = iota
	// Rig scenarios need servers and processes that the rig has started.
	Rig
)

// Plan is the schedule of one run. Nil functions do nothing.
type Plan struct {
	// Inject returns what is injected into the n-th request, counted from 0.
	Inject func(n int) Injection
	// Prepare sets the testbed up before the first request.
	Prepare func(ctx context.Context, testbed *rig.Testbed) error
	// Intervene is called when a request with a fault has reached its point, and Relieve when it
	// has been answered.
	Intervene func(ctx context.Context, testbed *rig.Testbed, at Reached) error
	Relieve   func(ctx context.Context, testbed *rig.Testbed, at Reached) error
	// Restore undoes Prepare, after the last request.
	Restore func(ctx context.Context, testbed *rig.Testbed) error
	// Intervention names what Intervene does, or Prepare where there is no Intervene. A size may
	// follow the name, after a space. Each language has a phrase for it: see explain/words.
	Intervention string
}

// Reached says where a request with a fault has reached its point.
type Reached struct {
	Shop int      // the index of the shop that serves it
	Keys []string // where Redis keeps the item's lock or counter; none before Redis has announced one
}

// Injection is what is injected into one request. The zero value leaves an ordinary sale.
type Injection struct {
	Fault  labmode.Fault // none for the zero value
	Nested bool          // take the lock a second time
	// Work is additional work at the point read of a request without a fault. It makes it certain
	// that another sale is in the section when a late holder returns.
	Work time.Duration
	// Alone keeps other requests away from the shop until it has answered this one. A fault that
	// takes the whole shop down must not take all the demand down with it.
	Alone bool
	// InTurn sends the request only when no other such request waits for its answer. While one shop
	// is stopped, the others sell.
	InTurn bool
	// Idle sends the request only when the shop has answered all others. The fault comes after its
	// own answer, and is to meet no other sale.
	Idle bool
}

// HasFault reports whether a fault is injected.
func (i Injection) HasFault() bool { return i.Fault != labmode.Fault{} }

// Expected returns the verdict on a strategy with these properties under the scenario.
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
	case strategy.DurableAnswers:
		return heldIf(p.Meets(strategy.DurableAnswers), Lied)
	case strategy.Recovers:
		if !p.Meets(strategy.DurableAnswers) {
			return Lied // orders that were answered die with the shop
		}
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

// Decisive returns the property that decides [Scenario.Expected].
func (s Scenario) Decisive(p strategy.Properties) Decisive {
	decisive := s.Attacks
	switch {
	case decisive == strategy.Reentrant && !p.Meets(strategy.Reentrant):
	case !p.Meets(strategy.Exclusive):
		decisive = strategy.Exclusive
	case decisive == strategy.Recovers && !p.Meets(strategy.DurableAnswers):
		decisive = strategy.DurableAnswers
	case decisive == strategy.AtomicLease || decisive == strategy.LossAware:
		if !p.Meets(strategy.Recovers) {
			decisive = strategy.Recovers
		}
	case decisive == strategy.AtomicRelease && !p.Meets(strategy.OwnerChecked):
		decisive = strategy.OwnerChecked
	}
	standing := p.Standing(decisive)
	if standing == strategy.Lacks && s.Expected(p) == Held {
		decisive, standing = strategy.StorageChecked, strategy.Has
	}
	return Decisive{decisive.String(), standing}
}

// Kind and the words below are those of package verdict.
type Kind = verdict.Kind

const (
	Held       = verdict.Held
	Oversold   = verdict.Oversold
	Lied       = verdict.Lied
	Left       = verdict.Left
	Unbalanced = verdict.Unbalanced
	Stuck      = verdict.Stuck
	Invalid    = verdict.Invalid
	Skipped    = verdict.Skipped
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
