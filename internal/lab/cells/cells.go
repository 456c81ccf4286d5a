// Package cells reads the words that choose cells: those of loadtest run and loadtest serve, and those in the lessons.
//
//	STRATEGY             under contention; a way that only sells baskets, or only reserves, under all of its group
//	SCENARIO, GROUP      with every strategy that it applies to
//	STRATEGY:SCENARIO    one cell
//
// On both sides of the colon a list has commas. The strategy all stands for every one that a scenario applies to. In
// place of a scenario stands a group of them, or telling: the scenario that shows most about a strategy. No strategy
// has the name of a scenario or of a group, so a word without a colon is one of the two.
package cells

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/trial"
	"stocklock/internal/strategy/declared"
)

// Usual are the words where none is given: strategies under contention.
var Usual = []string{"none", "setnx", "set-ex-nx", "owner-checked", "reentrant"}

// Names that stand for several.
const (
	All     = "all"     // strategies
	Telling = "telling" // the scenario that shows most about each
)

// Crossed are strategies and scenarios by their names, each of which is to be run with each.
type Crossed struct {
	Strategies, Scenarios []string
	alone                 bool // no scenario was named
}

// Parse reads a word. The names of strategies are a shop's, so that they are not looked up here.
func Parse(word string) (all []Crossed) {
	if strategies, scenarios, ok := strings.Cut(word, ":"); ok {
		return []Crossed{{Strategies: strings.Split(strategies, ","), Scenarios: strings.Split(scenarios, ",")}}
	}
	for name := range strings.SplitSeq(word, ",") {
		if slices.Contains(Scenarios(), name) {
			all = append(all, Crossed{Strategies: []string{All}, Scenarios: []string{name}})
			continue
		}
		all = append(all, Crossed{Strategies: []string{name}, Scenarios: []string{trial.Contention}, alone: true})
	}
	return all
}

// Scenarios are all names that can stand behind the colon.
func Scenarios() []string {
	return slices.Concat(scenario.NamesOf(scenario.All()), scenario.Groups(), []string{Telling})
}

// Pairs are the cells that words choose, scenario by scenario, in the order of the words. Of a group, the pairs that
// mean nothing are left out. One that is named is an error.
func Pairs(words []string, shop *catalog.Catalog) (pairs []matrix.Pair, err error) {
	var order []string // of the scenarios
	seen := map[string]bool{}
	for _, word := range words {
		for _, crossed := range Parse(word) {
			more, err := crossed.pairs(shop)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", word, err)
			}
			for _, p := range more {
				if name := p.Strategy.Name + ":" + p.Scenario.Name; !seen[name] {
					seen[name] = true
					order, pairs = append(order, p.Scenario.Name), append(pairs, p)
				}
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b matrix.Pair) int {
		return slices.Index(order, a.Scenario.Name) - slices.Index(order, b.Scenario.Name)
	})
	return pairs, nil
}

func (c Crossed) pairs(shop *catalog.Catalog) (pairs []matrix.Pair, err error) {
	if c.alone {
		way, err := shop.Any(c.Strategies[0])
		switch {
		case err != nil:
			return nil, fmt.Errorf("no strategy, scenario or group has this name: %ssee loadtest list", scenario.Meant(c.Strategies[0], append(shop.Names(), Scenarios()...)))
		case way.OnlyBaskets:
			c.Scenarios = []string{trial.Baskets}
		case way.OnlyReservations:
			c.Scenarios = []string{trial.Reservations}
		}
	}
	for _, name := range c.Scenarios {
		more, err := under(name, c.Strategies, shop)
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, more...)
	}
	if len(pairs) == 0 {
		return nil, errors.New("no cell is of these")
	}
	return pairs, nil
}

// under are the cells of a scenario, of a group or of [Telling].
func under(name string, strategies []string, shop *catalog.Catalog) (pairs []matrix.Pair, err error) {
	if name == Telling {
		found, err := Named(strategies, shop.Strategies, shop.ByName)
		for _, st := range found {
			sc, _ := scenario.ByName(st.Telling) // the catalog has looked
			pairs = append(pairs, matrix.Pair{Strategy: st, Scenario: sc})
		}
		return pairs, err
	}
	scenarios := scenario.Group(name)
	group := len(scenarios) > 0
	if !group {
		sc, err := scenario.ByName(name)
		if err != nil {
			return nil, fmt.Errorf("no scenario %q: %swant one of %s, or a group: %s", name, scenario.Meant(name, Scenarios()),
				strings.Join(scenario.Names(), ", "), strings.Join(append(scenario.Groups(), Telling), ", "))
		}
		scenarios = []trial.Scenario{sc}
	}
	for _, sc := range scenarios {
		all, byName := shop.Under(sc)
		if group { // a name may be of another kind of scenario of the group
			byName = shop.Any
		}
		found, err := Named(strategies, all, byName)
		if err != nil {
			return nil, err
		}
		for _, st := range found {
			switch {
			case sc.Applies(st):
				pairs = append(pairs, matrix.Pair{Strategy: st, Scenario: sc})
			case !group && slices.Contains(strategies, st.Name):
				return nil, fmt.Errorf("%s is no cell of %s: loadtest run %s --expect-only lists those that are", sc.Name, st.Name, sc.Name)
			}
		}
	}
	return pairs, nil
}

// Named are the strategies that names stand for, in the order of the names, each once. [All] stands for all.
func Named(names []string, all []declared.Strategy, byName func(string) (declared.Strategy, error)) (found []declared.Strategy, err error) {
	for _, name := range names {
		if name == All {
			continue
		}
		of, err := byName(name)
		if err != nil {
			return nil, fmt.Errorf("%w, or %s", err, All)
		}
		if !slices.ContainsFunc(found, func(s declared.Strategy) bool { return s.Name == of.Name }) {
			found = append(found, of)
		}
	}
	if slices.Contains(names, All) {
		return all, nil
	}
	return found, nil
}
