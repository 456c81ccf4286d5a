package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"stocklock/internal/lab/drawing"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/words"
)

// Fact is a value with its name.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Facts are the environment as it is shown.
func (e Environment) Facts() []Fact {
	facts := []Fact{
		{Name: "command", Value: e.Command}, {Name: "when", Value: e.Time}, {Name: "seed", Value: fmt.Sprint(e.Seed)},
		{Name: "system", Value: e.OS + ", " + plural(e.Cores, "core")}, {Name: "Go", Value: e.Go},
		{Name: "database", Value: known(e.MySQL, "database")}, {Name: "Redis", Value: known(e.Redis, "Redis")},
		{Name: "shops", Value: fmt.Sprint(e.Shops)}, {Name: "testbeds side by side", Value: fmt.Sprint(e.Testbeds)},
		{Name: "customers", Value: fmt.Sprint(e.Workers)},
		{Name: "lease", Value: drawing.Short(e.LeaseMS) + " ms"}, {Name: "wait", Value: drawing.Short(e.WaitMS) + " ms"},
		{Name: "retry", Value: drawing.Short(e.RetryMS) + " ms"}, {Name: "work", Value: drawing.Short(e.WorkMS) + " ms"},
		{Name: "database connections a shop", Value: fmt.Sprint(e.PoolMySQL)},
	}
	if e.Etcd != "" {
		facts = append(facts, Fact{Name: "etcd", Value: e.Etcd})
	}
	if e.Rate != "" {
		facts = append(facts, Fact{Name: "requests a second", Value: e.Rate})
	}
	for _, library := range slices.Sorted(maps.Keys(e.Libraries)) {
		facts = append(facts, Fact{Name: library, Value: e.Libraries[library]})
	}
	return facts
}

// known is a version, or "unknown" with the name of the server where no version was read.
func known(version, server string) string { return cmp.Or(version, "unknown "+server) }

// short are the facts that every table of numbers names.
func (e Environment) short() []string {
	return []string{known(e.MySQL, "database"), known(e.Redis, "Redis"), plural(e.Cores, "core"), fmt.Sprintf("seed %d", e.Seed)}
}

// sideBySide is a warning for numbers that were measured while other cells ran, empty where none
// did.
func (e Environment) sideBySide() words.Text {
	if e.Testbeds < 2 {
		return words.Text{}
	}
	return words.Of("load.beside", "n", e.Testbeds)
}

// differences are the other conditions that may make numbers differ, each with both values.
func differences(before, after Report) []string {
	found := differing(before.Environment.conditions(), after.Environment.conditions())
	old := before.byPlace()
	for _, c := range after.InOrder() {
		was, ok := old[placeOf(c)]
		if !ok {
			continue
		}
		// All cells of a run have the same conditions: the first difference is enough.
		if differ := differing(cellConditions(was), cellConditions(c)); len(differ) > 0 {
			return append(found, differ...)
		}
	}
	return found
}

// conditions are the facts that may make numbers differ.
func (e Environment) conditions() []Fact {
	return slices.DeleteFunc(e.Facts(), func(f Fact) bool { return f.Name == "when" || f.Name == "command" })
}

func cellConditions(c trial.Result) []Fact {
	facts := []Fact{{Name: "stock", Value: fmt.Sprint(c.InitialStock)}, {Name: "runs", Value: fmt.Sprint(c.Runs)}}
	if c.SideBySide > 0 {
		facts = append(facts, Fact{Name: "cells side by side", Value: fmt.Sprint(c.SideBySide)})
	}
	if c.Comparable() {
		facts = append(facts, Fact{Name: "requests", Value: fmt.Sprint(c.Requests)})
	}
	return facts
}

func differing(was, is []Fact) []string {
	var found []string
	for _, f := range slices.Concat(was, is) {
		before, after := valueOf(was, f.Name), valueOf(is, f.Name)
		if said := fmt.Sprintf("%s %s and %s", f.Name, before, after); before != after && !slices.Contains(found, said) {
			found = append(found, said)
		}
	}
	return found
}

// none stands for a fact that a report does not have.
const none = "none"

func valueOf(facts []Fact, name string) string {
	if i := slices.IndexFunc(facts, func(f Fact) bool { return f.Name == name }); i >= 0 {
		return facts[i].Value
	}
	return none
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
