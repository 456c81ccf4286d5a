package matrix

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"stocklock/internal/lab/bench"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/trial"
	"stocklock/internal/stock"
	"stocklock/internal/strategy/declared"
)

// Pair is a strategy under a scenario.
type Pair struct {
	Strategy declared.Strategy
	Scenario trial.Scenario
}

// Plan says which cells to run, and how. A zero value that makes no sense stands for the default,
// which depends on the cells: see [Plan.Completed].
type Plan struct {
	Pairs []Pair // in the order of the results
	// Strategies are those of the pairs in the order of tables; by default the order of the pairs.
	Strategies []declared.Strategy
	Offered    []declared.Strategy // all that the shop has: where one breaks, some of these would have held
	Runs       int                 // of each pair, each with another seed; 1 by default
	Seed       uint64              // of the first run
	Parallel   int                 // cells at once, each on a testbed of its own

	Shops    int           // processes of each testbed
	Stock    int64         // units to sell
	Requests int           // of a fixed load
	Workers  int           // customers who buy at once
	Shape    load.Shape    // by default, as fast as the workers can
	Records  *load.Records // where every request is written down; nil for nowhere
	MySQLSet []string      // settings of the MySQL that is started, as [testserver.Settings] takes them

	Lease, Wait, Retry time.Duration // of the locks
	// Work is what a sale does inside its section. Nil stands for DefaultWork where nothing is injected,
	// and for none elsewhere.
	Work *time.Duration

	Shop  string // the program that is started as the shops; empty for the one of the checkout
	MySQL string // the DSN of a server; empty to start one
	Redis string // the URL of a server; empty to start one for each testbed
	// RedisServer is the program that is started as Redis; empty for the one of the machine.
	RedisServer string
	Given       []trial.Shop // shops in lab mode, on MySQL; none to start them

	// snapshotIsolation is what the server says: see [declared.Circumstances].
	snapshotIsolation bool
	// calm are the comparable cells of a completed plan that has others besides. They run one at a
	// time, on a testbed without proxies.
	calm *Plan
}

// Defaults that do not depend on what is run.
const (
	DefaultShops   = 3
	DefaultWorkers = 12
	DefaultRetry   = 2 * time.Millisecond
	DefaultWork    = 10 * time.Millisecond
)

// stockOfShape is the stock for a rate with an end, in percent of the requests: it lasts nearly to
// the end, and the last requests can still be oversold to.
const stockOfShape = 90

// answerWithin is how long a request may take besides the wait for its lock.
const answerWithin = 20 * time.Second

// parts are plans whose cells have the same kind of bench: one server, baskets, reservations, topologies.
func (p Plan) parts() (parts []Plan) {
	for _, same := range []func(trial.Scenario) bool{
		func(s trial.Scenario) bool { return s.Few == nil }, trial.Scenario.OfBaskets, trial.Scenario.OfReservations,
		func(s trial.Scenario) bool { return s.Topology != nil },
	} {
		part := p
		part.Pairs = slices.DeleteFunc(slices.Clone(p.Pairs), func(c Pair) bool { return !same(c.Scenario) })
		if len(part.Pairs) == 0 {
			continue
		}
		if part.ofAFew() {
			part.Strategies = part.strategiesOfPairs()
		}
		parts = append(parts, part)
	}
	return parts
}

// OneServer is the part of the plan for one server, with its defaults, and without pairs where it has none.
func (p Plan) OneServer() Plan {
	p.Pairs = slices.DeleteFunc(slices.Clone(p.Pairs), func(c Pair) bool { return c.Scenario.Few != nil })
	return p.Completed()
}

// ofAFew reports whether a few customers buy in all cells, and not a crowd.
func (p Plan) ofAFew() bool { return len(p.Pairs) > 0 && p.Pairs[0].Scenario.Few != nil }

// topologiesAtOnce is how many scenarios of topologies run at once: each waits for its servers, most of the time.
const topologiesAtOnce = 4

// forAFew completes a plan whose scenarios set what its shops need. Those of one database server run one after the
// other, so that deadlocks are theirs.
func (p Plan) forAFew() Plan {
	sc := p.Pairs[0].Scenario
	set := sc.Settings()
	p.Shops, p.Lease, p.Wait, p.Work = set.Shops, set.Lease, set.Wait, new(time.Duration(0))
	p.Retry = cmp.Or(set.Retry, p.Retry, DefaultRetry)
	setDefault(&p.Runs, 1)
	setDefault(&p.Workers, 1)
	if sc.Topology == nil {
		p.Parallel = 1
	}
	setDefault(&p.Parallel, topologiesAtOnce)
	return p
}

// Comparison reports whether the numbers of all cells may be compared.
func (p Plan) Comparison() bool {
	return !slices.ContainsFunc(p.Pairs, func(c Pair) bool { return !c.Scenario.Comparable })
}

// Completed returns the plan with its defaults. Numbers that are compared come from one cell at a
// time, long leases and much stock. Other cells run four at a time, with leases short enough to run
// out.
func (p Plan) Completed() Plan {
	if len(p.Strategies) == 0 {
		p.Strategies = p.strategiesOfPairs()
	}
	if p.ofAFew() {
		return p.forAFew()
	}
	comparison := p.Comparison()
	requests, ends := p.Shape.Total()
	if calm := p; !comparison && len(p.Given) == 0 {
		calm.Pairs = slices.DeleteFunc(slices.Clone(p.Pairs), func(c Pair) bool { return !c.Scenario.Comparable })
		if !ends {
			setDefault(&calm.Stock, FaultStock)
		}
		if len(calm.Pairs) > 0 {
			calm = calm.Completed()
			p.calm = &calm
		}
	}
	setDefault(&p.Runs, 1)
	setDefault(&p.Shops, DefaultShops)
	setDefault(&p.Workers, DefaultWorkers)
	setDefault(&p.Retry, DefaultRetry)
	if comparison && ends {
		setDefault(&p.Requests, requests)
		setDefault(&p.Stock, max(int64(requests)*stockOfShape/100, 1))
	}
	if comparison {
		setDefault(&p.Stock, 100)
		setDefault(&p.Lease, max(trial.LongLease, p.shortestLease()))
		setDefault(&p.Wait, 5*time.Second)
		setDefault(&p.Parallel, 1)
		setDefault(&p.Work, new(DefaultWork))
	}
	setDefault(&p.Work, new(time.Duration(0)))
	if len(p.Given) > 0 {
		setDefault(&p.Parallel, 1)
	}
	setDefault(&p.Stock, FaultStock)
	setDefault(&p.Lease, max(500*time.Millisecond, p.shortestLease()))
	setDefault(&p.Wait, p.Lease*3/4)
	setDefault(&p.Parallel, 4)
	setDefault(&p.Requests, 4*int(p.Stock))
	p.Parallel = min(p.Parallel, len(p.Pairs)*p.Runs)
	return p
}

// FaultStock is the stock where something goes wrong.
const FaultStock = 30

func (p Plan) strategiesOfPairs() []declared.Strategy {
	var once []declared.Strategy
	for _, c := range p.Pairs {
		if !slices.ContainsFunc(once, func(s declared.Strategy) bool { return s.Name == c.Strategy.Name }) {
			once = append(once, c.Strategy)
		}
	}
	return once
}

// shortestLease is the shortest lease that all strategies can have.
func (p Plan) shortestLease() time.Duration {
	var shortest time.Duration
	for _, c := range p.Pairs {
		shortest = max(shortest, c.Strategy.ShortestLease)
	}
	return shortest
}

func setDefault[T comparable](value *T, usual T) {
	var zero T
	if *value == zero {
		*value = usual
	}
}

// options are what all cells share.
func (p Plan) options() trial.Options {
	return trial.Options{
		Stock: p.Stock, Requests: p.Requests, Workers: p.Workers, Shape: p.Shape, Timeout: p.Wait + answerWithin, Records: p.Records,
		Lease: p.Lease, Wait: p.Wait, Circumstances: p.circumstances(), Offered: p.Offered, Conditions: p.conditions(),
	}
}

func (p Plan) conditions() trial.Conditions {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	return trial.Conditions{LeaseMS: ms(p.Lease), WaitMS: ms(p.Wait), RetryMS: ms(p.Retry), WorkMS: ms(*p.Work)}
}

// Expected are the cells of the plan with what is expected of them. Nothing is run.
func (p Plan) Expected() report.Report {
	r := report.Report{Strategies: p.Completed().Strategies}
	for _, c := range p.Pairs {
		of := c.Strategy
		if c.Scenario.Few == nil {
			of = of.Under(p.circumstances())
		}
		r.Cells = append(r.Cells, trial.Result{Strategy: of.Name, Scenario: c.Scenario.Name, Group: c.Scenario.Group, Expected: c.Scenario.Expected(of).Verdict})
	}
	return r
}

// shops is how many shops sell.
func (p Plan) shops() int {
	if len(p.Given) > 0 {
		return len(p.Given)
	}
	return p.Shops
}

const smallestPool = 4 // of a shop: a sale that waits may keep one

// poolSize is how many connections a shop may open, so that all testbeds together stay below the server's
// max_connections. A server that refuses connections would decide verdicts: who is answered before the order is
// written has none then.
func (p Plan) poolSize(most int) (int, error) {
	shops := p.Shops * p.Parallel
	if p.calm != nil {
		shops += p.calm.Shops
	}
	pool := (most-bench.PoolSize-4)/shops - 2 // a shop has two besides
	if pool < smallestPool {
		return 0, fmt.Errorf("the max_connections of MySQL, %d, are too few for %d shops: raise them, or give a lower --parallel or --shops", most, shops)
	}
	return min(pool, stock.PoolSize), nil
}

// Of is the plan by which the cells of a scenario run.
func (p *Plan) Of(sc trial.Scenario) *Plan {
	if p.calm != nil && sc.Comparable {
		return p.calm
	}
	return p
}

// circumstances are those that decide what is expected of a strategy.
func (p Plan) circumstances() declared.Circumstances {
	return declared.Circumstances{OneProcess: p.shops() == 1, SnapshotIsolation: p.snapshotIsolation}
}
