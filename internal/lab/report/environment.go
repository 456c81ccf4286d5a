package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"stocklock/internal/lab/drawing"
)

// facts are the environment as it is shown.
func (e Environment) facts() []fact {
	facts := []fact{
		{Name: "command", Value: brokenCommand(e.Command, drawingWidth), Wide: true}, {Name: "when", Value: e.Time}, {Name: "seed", Value: fmt.Sprint(e.Seed)},
		{Name: "system", Value: e.OS + ", " + plural(e.Cores, "core")}, {Name: "Go", Value: e.Go},
		{Name: "database", Value: known(e.MySQL, "database")}, {Name: "Redis", Value: known(e.Redis, "Redis")},
		{Name: "shops", Value: fmt.Sprint(e.Shops)}, {Name: "testbeds side by side", Value: fmt.Sprint(e.Testbeds)},
		{Name: "customers", Value: fmt.Sprint(e.Workers)},
		{Name: "lease", Value: drawing.Short(e.LeaseMS) + " ms"}, {Name: "wait", Value: drawing.Short(e.WaitMS) + " ms"},
		{Name: "retry", Value: drawing.Short(e.RetryMS) + " ms"}, {Name: "work", Value: drawing.Short(e.WorkMS) + " ms"},
		{Name: "database connections a shop", Value: fmt.Sprint(e.PoolMySQL)},
	}
	if e.Etcd != "" {
		facts = append(facts, fact{Name: "etcd", Value: e.Etcd})
	}
	if e.Rate != "" {
		facts = append(facts, fact{Name: "requests a second", Value: e.Rate})
	}
	for _, library := range slices.Sorted(maps.Keys(e.Libraries)) {
		facts = append(facts, fact{Name: library, Value: e.Libraries[library]})
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
func (e Environment) sideBySide() string {
	if e.Testbeds < 2 {
		return ""
	}
	return fmt.Sprintf("Measured while %d cells ran side by side on the same cores: compare with care.", e.Testbeds)
}
