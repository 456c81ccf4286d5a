package report

import (
	"fmt"
	"slices"

	"stocklock/internal/lab/trial"
)

// differences are the other conditions that may make numbers differ, each with both values.
func differences(before, after Report) []string {
	found := differing(before.Environment.conditions(), after.Environment.conditions())
	old := before.byPlace()
	for _, c := range after.inOrder() {
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
func (e Environment) conditions() []fact {
	return slices.DeleteFunc(e.facts(), func(f fact) bool { return f.Name == "when" || f.Name == "command" })
}

func cellConditions(c trial.Result) []fact {
	facts := []fact{{Name: "stock", Value: fmt.Sprint(c.InitialStock)}, {Name: "runs", Value: fmt.Sprint(c.Runs)}}
	if c.FixedLoad() {
		facts = append(facts, fact{Name: "requests", Value: fmt.Sprint(c.Requests)})
	}
	return facts
}

func differing(was, is []fact) []string {
	var found []string
	for _, f := range was {
		if now := valueOf(is, f.Name); now != f.Value {
			found = append(found, fmt.Sprintf("%s %s and %s", f.Name, f.Value, now))
		}
	}
	for _, f := range is {
		if valueOf(was, f.Name) == none {
			found = append(found, fmt.Sprintf("%s %s and %s", f.Name, none, f.Value))
		}
	}
	return found
}

// none stands for a fact that a report does not have.
const none = "none"

func valueOf(facts []fact, name string) string {
	if i := slices.IndexFunc(facts, func(f fact) bool { return f.Name == name }); i >= 0 {
		return facts[i].Value
	}
	return none
}
