package topology

import (
	"context"
	"slices"

	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/strategy/declared"
)

// Scenario is what happens to the servers of a database.
type Scenario struct {
	Name string
	Doc  string // one line: what happens
	// Attacks is the property of a strategy without which more is sold than there is, or a sale is answered as sold
	// without an order. 0 attacks the topology alone.
	Attacks   declared.Property
	Otherwise verdict.Kind
	// Forgets says that the primary is lost with what nobody else has. Where the topology is not durable, answers
	// rest on that. A strategy that counts in Redis, and does not recover, leaves the units of a sale that was on
	// its way.
	Forgets bool

	only  []string // the strategies of which the case is a cell, by name; nil for all
	stock int64
	play  func(context.Context, *group) error
}

// ofEachKind are strategies that differ in how a sale meets a database that fails over. The others of their kinds end
// as they do.
var ofEachKind = []string{"redis-async", "ack-first", "redis-stream", "reentrant", "get-lock", "fenced", "for-update", "conditional"}

// Case is a scenario at a topology.
type Case struct {
	Topology Topology
	Scenario Scenario
}

// Name is that of both, such as "async-failover".
func (c Case) Name() string { return c.Topology.Name + "-" + c.Scenario.Name }

// Of are those of the strategies of which the case is a cell: of the others, another case of the topology decides the
// same.
func (c Case) Of(strategies []declared.Strategy) []declared.Strategy {
	if c.Scenario.only == nil {
		return strategies
	}
	return slices.DeleteFunc(slices.Clone(strategies), func(of declared.Strategy) bool { return !slices.Contains(c.Scenario.only, of.Name) })
}

// Doc says in one line what happens to which servers.
func (c Case) Doc() string { return c.Topology.Doc + ": " + c.Scenario.Doc }

var (
	failover = Scenario{
		Name: "failover", Doc: "the primary is killed before its last commits were copied, and another server takes over",
		Attacks: declared.DurableAnswers, Otherwise: verdict.Lied, Forgets: true, stock: 12, play: failOver,
	}
	restart = Scenario{
		Name: failover.Name, Doc: "the server is killed, and started again with its disk",
		Attacks: failover.Attacks, Otherwise: failover.Otherwise, Forgets: true, stock: failover.stock, play: failOver,
	}
	handover = Scenario{
		Name: failover.Name, Doc: "the node that is written to is killed before the others applied its last commits, and another takes over",
		Attacks: failover.Attacks, Otherwise: failover.Otherwise, Forgets: true, stock: failover.stock, play: failOver,
	}
	rewind = Scenario{
		Name: "rewind", Doc: "a sale has read; its primary is lost with the last sales, and others sell until the version is the same again",
		Attacks: declared.RewindProof, Otherwise: verdict.Oversold, Forgets: true, stock: 24, play: rewound,
	}
	planned = Scenario{
		Name: "switchover", Doc: "the replica becomes the primary as planned, and a shop has connections to the old one, which is read-only",
		Attacks: declared.SwitchoverProof, Otherwise: verdict.Oversold, stock: 3, play: switchOver,
	}
	quiet = Scenario{
		Name: "silent", Doc: "the replica is silent until customers wait, and is heard again",
		only: ofEachKind, stock: 12, play: silent,
	}
	comesBack = Scenario{
		Name: "errant", Doc: "after a failover the old primary comes back with transactions that nobody else has, and a shop is led to it",
		Attacks: failover.Attacks, Otherwise: failover.Otherwise, Forgets: true, only: ofEachKind, stock: failover.stock, play: errant,
	}
	cutOffNode = Scenario{
		Name: "isolated", Doc: "the node that is written to is cut off from the others, which go on",
		Attacks: failover.Attacks, Otherwise: failover.Otherwise, Forgets: true, only: ofEachKind, stock: failover.stock, play: isolated,
	}
	lateReads = Scenario{
		Name: "late", Doc: "the replica has not applied the last sale when the next one reads",
		Attacks: declared.ReadsSource, Otherwise: verdict.Oversold, stock: 3, play: late,
	}
	lateNode = Scenario{
		Name: "late", Doc: "the second node has not applied the last sale when its own shop sells",
		Attacks: declared.WritesAnywhere, Otherwise: verdict.Oversold, stock: 3, play: late,
	}
)

// Cases are the cells' columns, in the order of the tables: of each topology, the scenarios that decide something
// there.
var Cases = cases(map[string][]Scenario{
	"single":            {restart},
	"async":             {failover, rewind, planned, comesBack},
	"semi-sync":         {failover, quiet, comesBack},
	"semi-sync-timeout": {failover},
	"replica-reads":     {lateReads},
	"galera":            {handover, cutOffNode},
	"galera-writers":    {lateNode},
})

func cases(of map[string][]Scenario) []Case {
	var all []Case
	for _, t := range All {
		for _, s := range of[t.Name] {
			all = append(all, Case{t, s})
		}
	}
	return all
}

// CaseByName finds a case. The error lists all names.
func CaseByName(name string) (Case, error) {
	return scenario.Named("scenario of a topology", name, Cases, Case.Name)
}

// durable is the fact of a topology that decides like a property.
const durable = "durable-commits"

// Expected returns what to expect of a strategy: what is attacked decides first, then what the topology forgets.
func (c Case) Expected(of declared.Strategy) scenario.Expectation {
	expect := func(kind verdict.Kind, property declared.Property) scenario.Expectation {
		return scenario.Expectation{Verdict: kind, Because: scenario.Decisive{Property: property.String(), Standing: of.Everywhere().Standing(property)}}
	}
	s := c.Scenario
	switch {
	case s.Attacks == 0 && c.Topology.Durable:
		return scenario.Expectation{Verdict: verdict.Held, Because: scenario.Decisive{Property: durable, Standing: declared.Has}}
	case of.Everywhere().Standing(s.Attacks) == declared.Lacks:
		return expect(s.Otherwise, s.Attacks)
	case s.Forgets && !c.Topology.Durable:
		return scenario.Expectation{Verdict: verdict.Lied, Because: scenario.Decisive{Property: durable, Standing: declared.Lacks}}
	case s.Forgets && of.Counts() && of.Standing(declared.Recovers) == declared.Lacks:
		return expect(verdict.Left, declared.Recovers)
	}
	return expect(verdict.Held, s.Attacks)
}
