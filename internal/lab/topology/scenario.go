package topology

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/strategy"
)

// Scenario is what happens to the servers of a database.
type Scenario struct {
	Name string
	Doc  string // one line: what happens
	// Demands are what a strategy must have to hold, in the order in which their lack shows, with the verdict on
	// a strategy without it. None mean that every strategy is expected to hold.
	Demands []scenario.Demand
	// Forgets says that the primary is lost: what it has answered and nobody else has, is answered as sold without
	// an order where the topology is not durable.
	Forgets bool

	stock int64
	play  func(context.Context, *group) error
}

// Case is a scenario at a topology.
type Case struct {
	Topology Topology
	Scenario Scenario
}

// Name is that of both, such as "async-failover".
func (c Case) Name() string { return c.Topology.Name + "-" + c.Scenario.Name }

// Doc says in one line what happens to which servers.
func (c Case) Doc() string { return c.Topology.Doc + ": " + c.Scenario.Doc }

var (
	failover = Scenario{
		Name: "failover", Doc: "the primary is killed before its last commits were copied, and another server takes over",
		Demands: []scenario.Demand{{Property: strategy.DurableAnswers, Otherwise: verdict.Lied}}, Forgets: true, stock: 12, play: failOver,
	}
	rewind = Scenario{
		Name: "rewind", Doc: "a sale has read; its primary is lost with the last sales, and others sell until the version is the same again",
		Demands: []scenario.Demand{{Property: strategy.RewindProof, Otherwise: verdict.Oversold}}, Forgets: true, stock: 24, play: rewound,
	}
	lateReads = Scenario{
		Name: "late", Doc: "the replica has not applied the last sale when the next one reads",
		Demands: []scenario.Demand{{Property: strategy.ReadsSource, Otherwise: verdict.Oversold}}, stock: 6, play: late,
	}
	lateNode = Scenario{
		Name: "late", Doc: "the second node has not applied the last sale when its own shop sells",
		Demands: []scenario.Demand{{Property: strategy.WritesAnywhere, Otherwise: verdict.Oversold}}, stock: 6, play: late,
	}
)

// Cases are the cells' columns, in the order of the tables: of each topology, the scenarios that decide something
// there.
var Cases = cases(map[string][]Scenario{
	"single":            {failover},
	"async":             {failover, rewind},
	"semi-sync":         {failover},
	"semi-sync-timeout": {failover},
	"replica-reads":     {lateReads},
	"galera":            {failover},
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

// CaseNames returns the names of all cases.
func CaseNames() []string {
	names := make([]string, len(Cases))
	for i, c := range Cases {
		names[i] = c.Name()
	}
	return names
}

// CaseByName finds a case. The error lists all names.
func CaseByName(name string) (Case, error) {
	if i := slices.IndexFunc(Cases, func(c Case) bool { return c.Name() == name }); i >= 0 {
		return Cases[i], nil
	}
	return Case{}, fmt.Errorf("no scenario %q of a topology: want one of %s", name, strings.Join(CaseNames(), ", "))
}

// durable is the fact of a topology that decides like a property.
const durable = "durable commits"

// Expected returns what to expect of a strategy: the first demand that it does not meet decides, and then what
// the topology forgets.
func (c Case) Expected(of strategy.Description) scenario.Expectation {
	attacked := scenario.Decisive{Property: durable, Standing: strategy.Has}
	for _, d := range c.Scenario.Demands {
		attacked = scenario.Decisive{Property: d.Property.String(), Standing: of.Properties.Standing(d.Property)}
		if !of.Properties.Meets(d.Property) {
			return scenario.Expectation{Verdict: d.Otherwise, Because: attacked}
		}
	}
	if c.Scenario.Forgets && !c.Topology.Durable {
		return scenario.Expectation{Verdict: verdict.Lied, Because: scenario.Decisive{Property: durable, Standing: strategy.Lacks}}
	}
	return scenario.Expectation{Verdict: verdict.Held, Because: attacked}
}
