// Package scenario has the faults and loads under which the shops sell.
//
// Each scenario attacks one property of the strategies. It is one file and one line in all.go. The
// file has a [Play]: which sale is held at which point, what is done to the testbed meanwhile, and
// what must be seen before that is over. It does not say which strategies should hold. That follows
// from their properties: see [Scenario.Expected].
//
// A new scenario touches besides:
//
//   - broken in expected_test.go: the strategies that it breaks, written down by hand
//   - live/page/words/zh.json: its sentence in Chinese
//   - docs/mistakes: its section in a chapter of both languages, of which docs/make writes the first paragraph
//   - explain/words: a phrase for its intervention, where it has one
//   - package rig, where it does something that no other scenario does
//
// If it attacks a property that is not there yet, see [declared.Property] for the places.
package scenario

import (
	"fmt"
	"slices"
	"stocklock/internal/strategy/declared"
	"strings"
)

// Scenario is one way in which things go wrong.
type Scenario struct {
	Name    string            // the value of the flag
	Doc     string            // one line: what it does
	Attacks declared.Property // a strategy without it fails
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
	// Play is what goes wrong. The zero value is nothing.
	Play Play
}

// Need is what a scenario must be able to control.
type Need int

const (
	// Headers scenarios need only the headers of a request.
	Headers Need = iota
	// Rig scenarios need servers and processes that the rig has started.
	Rig
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

// ByName finds a scenario. The error lists all names.
func ByName(name string) (Scenario, error) {
	return Named("scenario", name, all, func(s Scenario) string { return s.Name })
}

// Named finds one of a kind by its name. The error lists all names, and asks whether one that looks
// alike was meant.
func Named[T any](kind, name string, all []T, nameOf func(T) string) (found T, err error) {
	names, meant := make([]string, len(all)), ""
	for i, of := range all {
		switch names[i] = nameOf(of); {
		case names[i] == name:
			return of, nil
		case meant == "" && alike(names[i], name):
			meant = fmt.Sprintf("did you mean %q? ", names[i])
		}
	}
	return found, fmt.Errorf("no %s %q: %swant one of %s", kind, name, meant, strings.Join(names, ", "))
}

// alike says whether two names differ in one place alone, by one letter or two.
func alike(a, b string) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return max(len(a), len(b)) <= 2
}
