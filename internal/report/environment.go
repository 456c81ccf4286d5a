package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// facts are the environment for people.
func (e Environment) facts() []fact {
	facts := []fact{
		{Name: "when", Value: e.Time}, {Name: "command", Value: e.Command}, {Name: "seed", Value: fmt.Sprint(e.Seed)},
		{Name: "system", Value: fmt.Sprintf("%s, %d cores", e.OS, e.Cores)}, {Name: "Go", Value: e.Go},
		{Name: "database", Value: known(e.MySQL)}, {Name: "Redis", Value: known(e.Redis)},
		{Name: "shops", Value: fmt.Sprint(e.Shops)}, {Name: "sites side by side", Value: fmt.Sprint(e.Sites)},
		{Name: "customers", Value: fmt.Sprint(e.Workers)},
		{Name: "lease", Value: short(e.LeaseMS) + " ms"}, {Name: "wait", Value: short(e.WaitMS) + " ms"},
		{Name: "retry", Value: short(e.RetryMS) + " ms"}, {Name: "work", Value: short(e.WorkMS) + " ms"},
		{Name: "database connections a shop", Value: fmt.Sprint(e.PoolMySQL)},
	}
	if e.Rate != "" {
		facts = append(facts, fact{Name: "requests a second", Value: e.Rate})
	}
	for _, library := range slices.Sorted(maps.Keys(e.Libraries)) {
		facts = append(facts, fact{Name: library, Value: e.Libraries[library]})
	}
	return facts
}

// known is a version, which nobody knows where a server of somebody else hides it.
func known(version string) string { return cmp.Or(version, "unknown") }
