// Package scenario lists everything that is done to the shops, for one server, for sales of several items, for
// reservations, and for databases of several servers.
//
// Each scenario attacks one property of the strategies. Those of one server are an entry in one_server.go each: a
// [trial.Play] says which sale of a crowd is held at which point, what is done to the testbed meanwhile, and
// what must be seen before that is over. Those of baskets, reservations and topologies have a function for that, in which
// a few customers do one thing after another: baskets.go, reservations.go, and topologies.go with the topology_ files.
// Such a function is written line by line, without errors: script.go and servers.go have the lines. A scenario does not
// say which strategies should hold. That follows from their properties: see [trial.Scenario.Expected].
//
// A new scenario touches besides:
//
//   - broken in expected_test.go: the strategies that it breaks, written down by hand
//   - words/zh.json: its sentence in Chinese
//   - docs/mistakes: its section in a chapter of both languages, of which docs/make writes the first paragraph
//   - words/en.json and zh.json: a line for its intervention, where it has one
//   - package rig, where it does something that no other scenario does
//
// If it attacks a property that is not there yet, see [declared.Property] for the places.
//
// # Decisions
//
// A failover pauses a holder at write, for less than its lease. A holder that is paused at read
// checks its lock once more, and might learn of the failover in time. A holder that is paused for
// longer than its lease fails for another reason. A pause after the last check and within the lease
// leaves the failover as the only way to admit a second holder.
//
// A quorum server that lost its data stays away until the cell is over. Redlock requires this. If
// the server returned at once, empty, it could form a second majority with the servers that had not
// voted.
//
// A fault lasts until what it waits for was seen. One sale of a cell, the first of its play, is
// held at a point by its shop, or its shop is killed or stopped there. It is sent while no other
// sale is under way, so it always reaches its point. The lab ends the hold when it has seen what
// the scenario names:
//
//   - The lease has ended, or was renewed, by the word of the server that keeps it: Redis, etcd or
//     a row of MySQL.
//   - Another sale has entered: it has read the stock, or written where nothing is read.
//   - Or the other sale was kept out: its guard refused it at the point waiting, or MySQL makes it
//     wait by its own tables. The lock must then still be the first sale's by its server, not that
//     of a third.
//
// For a late release, the sale that entered is held too, until the first has released and a third
// one has entered or was kept out. A cell keeps what it saw. What was not seen within twelve
// seconds makes it invalid: a cell whose fault did not meet is never held. A scenario whose point
// the sales of a strategy never pass *does not apply*, which follows from the points that the
// strategy declares.
//
// A strategy that declares renewal must sell during long work. A lock whose watchdog has stopped
// still oversells nothing if it gives up in time. If every long sale of an overrun loses its lock,
// the cell is therefore stuck, not held.
package scenario

import (
	"fmt"
	"slices"
	"strings"

	"stocklock/internal/lab/topology"
	"stocklock/internal/lab/trial"
)

// all lists the scenarios in the order of the tables. The doc of the package says what else a new one touches.
var all = slices.Concat(ofOneServer, ofBaskets, ofReservations, topologies())

// All returns the scenarios of all groups, in the order of the tables.
func All() []trial.Scenario { return slices.Clone(all) }

// Of returns the scenarios of a group: [trial.OneServer], [trial.Baskets], [trial.Reservations] or a topology's name.
func Of(group string) []trial.Scenario {
	return slices.DeleteFunc(All(), func(s trial.Scenario) bool { return s.Group != group })
}

// OfTopologies returns the scenarios of all topologies.
func OfTopologies() []trial.Scenario {
	return slices.DeleteFunc(All(), func(s trial.Scenario) bool { return s.Topology == nil })
}

// The names of several groups on the command line, besides those of [trial.Baskets], [trial.Reservations] and the topologies.
const (
	OneServer  = "all" // as it was before there were groups
	Topologies = "topologies"
	Everything = "everything"
)

// Group returns the scenarios that the name of a group stands for, none for another name.
func Group(name string) []trial.Scenario {
	switch name {
	case trial.OneServer: // which has another name on the command line
		return nil
	case OneServer:
		return Of(trial.OneServer)
	case Topologies:
		return OfTopologies()
	case Everything:
		return All()
	}
	return Of(name)
}

// Names returns the names of the scenarios of one server.
func Names() []string { return NamesOf(Of(trial.OneServer)) }

// NamesOf returns the names of scenarios.
func NamesOf(of []trial.Scenario) []string {
	names := make([]string, len(of))
	for i, s := range of {
		names[i] = s.Name
	}
	return names
}

// Groups returns the names that stand for several scenarios.
func Groups() []string {
	groups := []string{OneServer, trial.Baskets, trial.Reservations, Topologies}
	for _, t := range topology.All {
		groups = append(groups, t.Name)
	}
	return append(groups, Everything)
}

// ByName finds a scenario of any group. The error lists the names of those of one server.
func ByName(name string) (trial.Scenario, error) {
	if at := slices.IndexFunc(all, func(s trial.Scenario) bool { return s.Name == name }); at >= 0 {
		return all[at], nil
	}
	return Named("scenario", name, Of(trial.OneServer), func(s trial.Scenario) string { return s.Name })
}

// Named finds one of a kind by its name. The error lists all names, and asks whether one that looks
// alike was meant.
func Named[T any](kind, name string, all []T, nameOf func(T) string) (found T, err error) {
	names := make([]string, len(all))
	for i, of := range all {
		if names[i] = nameOf(of); names[i] == name {
			return of, nil
		}
	}
	return found, fmt.Errorf("no %s %q: %swant one of %s", kind, name, Meant(name, names), strings.Join(names, ", "))
}

// Meant asks whether the first name that looks alike was meant, and is empty where none does.
func Meant(name string, among []string) string {
	for _, of := range among {
		if alike(of, name) {
			return fmt.Sprintf("did you mean %q? ", of)
		}
	}
	return ""
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
