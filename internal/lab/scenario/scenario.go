// Package scenario has the faults and loads under which the shops sell.
//
// Each scenario attacks one property of the strategies. It is one file and one line in all.go. The
// file says which faults requests carry, and which intervention the rig makes when such a request
// reaches its point. It does not say which strategies should hold. That follows from their
// properties: see [Scenario.Expected].
//
// A new scenario touches besides:
//
//   - broken in expected_test.go: the strategies that it breaks, written down by hand
//   - live/page/words/zh.json: its sentence in Chinese
//   - docs/scenarios: its two pages, of which docs/make writes what is generated; docs/matrix.md
//   - explain/words: a phrase for its intervention, where it has one
//   - package rig, where it does something that no other scenario does
//
// If it attacks a property that is not there yet, see [strategy.Property] for the places.
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
	Attacks strategy.Property // a strategy without it fails
	// Demands are what a strategy must have to hold, in the order in which their lack shows. Nil
	// is the usual: without Exclusive or what is attacked, a strategy oversells.
	Demands []Demand
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
