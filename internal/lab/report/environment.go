package report

import (
	"fmt"
	"maps"
	"slices"

	"stocklock/internal/lab/drawing"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/words"
)

// Fact is a value with its name.
type Fact struct {
	Name  string     `json:"name"`
	Value words.Text `json:"value"`
}

// Facts are the environment as it is shown.
func (e Environment) Facts() []Fact {
	ms := func(v float64) string { return drawing.Short(v) + " ms" }
	facts := []Fact{
		fact("command", e.Command), fact("when", e.Time), fact("seed", e.Seed), {"system", words.Of("system", "os", e.OS, "n", e.Cores)}, fact("Go", e.Go),
		{"database", known(e.MySQL, "database")}, {"Redis", known(e.Redis, "Redis")}, fact("shops", e.Shops), fact("testbeds side by side", e.Testbeds),
		fact("customers", e.Workers), fact("lease", ms(e.LeaseMS)), fact("wait", ms(e.WaitMS)), fact("retry", ms(e.RetryMS)), fact("work", ms(e.WorkMS)),
		fact("database connections a shop", e.PoolMySQL),
	}
	if e.Etcd != "" {
		facts = append(facts, fact("etcd", e.Etcd))
	}
	if e.Rate != "" {
		facts = append(facts, fact("requests a second", e.Rate))
	}
	for _, library := range slices.Sorted(maps.Keys(e.Libraries)) {
		facts = append(facts, fact(library, e.Libraries[library]))
	}
	return facts
}

func fact(name string, value any) Fact { return Fact{name, words.AsItStands(fmt.Sprint(value))} }

// known is a version, or that it is unknown where none was read.
func known(version, server string) words.Text {
	if version == "" {
		return words.Of("unknown", "server", server)
	}
	return words.AsItStands(version)
}

// short are the facts that every table of numbers names.
func (e Environment) short(in *words.Language) string {
	return in.Joined(in.Say(words.Of("comma")), known(e.MySQL, "database"), known(e.Redis, "Redis"), words.Of("cores", "n", e.Cores), words.Of("with.seed", "seed", e.Seed))
}

// differences are the other conditions that may make numbers differ, each with both values.
func differences(in *words.Language, before, after Report) []string {
	var differ []string
	old := before.byName()
	for _, c := range after.InOrder() {
		was, ok := old[c.Name()]
		if !ok {
			continue
		}
		if none := (trial.Conditions{}); was.Conditions != none && c.Conditions != none {
			// Those of the environment are of cells whose numbers are not compared.
			before.Environment.Conditions, after.Environment.Conditions = was.Conditions, c.Conditions
		}
		if len(differ) == 0 { // all cells of a run have the same: the first difference is enough
			differ = differing(in, cellConditions(was), cellConditions(c))
		}
	}
	return append(differing(in, before.Environment.conditions(), after.Environment.conditions()), differ...)
}

// conditions are the facts that may make numbers differ.
func (e Environment) conditions() []Fact {
	return slices.DeleteFunc(e.Facts(), func(f Fact) bool { return f.Name == "when" || f.Name == "command" })
}

func cellConditions(c trial.Result) []Fact {
	facts := []Fact{fact("stock", c.InitialStock), fact("runs", c.Runs)}
	if c.SideBySide > 0 {
		facts = append(facts, fact("cells side by side", c.SideBySide))
	}
	if c.Comparable() {
		facts = append(facts, fact("requests", c.Requests))
	}
	return facts
}

func differing(in *words.Language, was, is []Fact) []string {
	var found []string
	for _, f := range slices.Concat(was, is) {
		before, after := valueOf(in, was, f.Name), valueOf(in, is, f.Name)
		if said := in.Say(words.Of("compare.fact", "name", in.Named("where", f.Name), "before", before, "after", after)); before != after && !slices.Contains(found, said) {
			found = append(found, said)
		}
	}
	return found
}

// valueOf is a fact, or that a report does not have it.
func valueOf(in *words.Language, facts []Fact, name string) string {
	if i := slices.IndexFunc(facts, func(f Fact) bool { return f.Name == name }); i >= 0 {
		return in.Say(facts[i].Value)
	}
	return in.Say(words.Of("compare.none"))
}
