package main

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/trial"
	"stocklock/internal/redisconn"
	"stocklock/internal/stock"
	"stocklock/internal/strategy/declared"
)

// selection is which cells to run.
type selection struct {
	Strategies []string `default:"${strategies}" help:"Which strategies of the shop, or all: see loadtest list strategies."`
	Scenarios  []string `default:"${usual_scenario}" help:"Under which scenarios: ${scenarios}, all (of these), or of groups with benches of their own: ${groups}. See loadtest list scenarios, list baskets and list topologies."`
	Cells      []string `placeholder:"STRATEGY:SCENARIO" help:"Run just these cells, instead of every strategy under every scenario; or telling: each strategy under the scenario that shows most about it."`
	Runs       int      `default:"1" min:"1" max:"1000" help:"How often to run each cell, each time with another seed."`
	Parallel   *int     `placeholder:"N" min:"1" max:"16" help:"How many cells to run at once, each with shops and a Redis of its own. Without it 1 under contention, where numbers are compared, and 4 for the other scenarios. Of topologies, how many scenarios with all their strategies: 4."`
}

// The cells of run where nothing is selected.
var usualStrategies = []string{"none", "setnx", "set-ex-nx", "owner-checked", "reentrant"}

const usualScenario = "contention"

// mysqlSettings are of a MySQL that is started.
type mysqlSettings struct {
	MySQLSet []string `name:"mysql-set" sep:"none" placeholder:"NAME=VALUE" help:"A setting of the MySQL that is started, such as innodb_snapshot_isolation=ON. Give it once for each."`
}

// settings say how cells are run. Package matrix has the defaults that depend on what is run.
type settings struct {
	Shops    int    `default:"${shops}" min:"1" max:"64" help:"How many shop processes sell at once."`
	Stock    *int64 `placeholder:"UNITS" min:"1" max:"1000000" help:"Units to sell. Without it 100, nine tenths of the requests of a --rate with an end, and 30 where other scenarios than contention are run."`
	Requests *int   `placeholder:"N" min:"1" max:"10000000" help:"Requests under contention, after which the load ends. Without it four times the stock, or what a --rate with an end sends. The other scenarios go on until all is sold."`
	Workers  int    `default:"${workers}" min:"1" max:"1000" help:"Customers who buy at the same time. Each waits for an answer before the next try."`
	Rate     string `placeholder:"SHAPE" help:"Requests a second, sent whether or not earlier ones were answered, by at most 1000 customers: ${shapes}. Without it as fast as the workers can."`
	Seed     uint64 `default:"1" help:"The seed of the fault schedules. The same seed gives the same requests the same faults. In which order the requests are served is not kept, so counts differ from run to run."`

	Lease *time.Duration `env:"LOADTEST_LEASE" placeholder:"DURATION" min:"100ms" max:"1m" help:"How long a lock lives without renewal. Without it 10s, and 500ms where other scenarios than contention are run."`
	Wait  *time.Duration `env:"LOADTEST_WAIT" placeholder:"DURATION" min:"1ms" max:"1m" help:"How long a sale waits for its lock. Without it 5s under contention, and three quarters of the lease for the other scenarios."`
	Retry time.Duration  `env:"LOADTEST_RETRY" default:"${retry}" min:"1ms" max:"10s" help:"Pause between two tries of locks that poll."`
	Work  *time.Duration `env:"LOADTEST_WORK" placeholder:"DURATION" min:"0s" max:"10s" help:"Work inside the section, between reading the stock and writing it. Without it ${work} under contention, and none for the other scenarios."`

	shopSettings  `embed:""`
	redisSettings `embed:""`

	MySQL         string   `name:"mysql" env:"LOADTEST_MYSQL" placeholder:"DSN" help:"A MySQL or MariaDB to use: user:password@tcp(host:3306)/database."`
	Redis         string   `env:"LOADTEST_REDIS" placeholder:"URL" help:"A Redis or Valkey to use: redis://host:6379."`
	Shop          []string `env:"LOADTEST_SHOP" placeholder:"URL[=TRACEFILE]" help:"A shop in lab mode to use, once for each, and the file of its SHOP_TRACE where that can be read here. Needs --mysql, for the audit: the same database. Give --lease, --wait, --retry and --work as the shops have them."`
	Binlog        bool     `help:"Have the MySQL that is started write a binlog and sync it with each commit, as MySQL does by default. The row of an item then stays locked for longer."`
	mysqlSettings `embed:""`
	Trace         bool `default:"true" negatable:"" help:"Record what happens in every sale, so that a failure can be explained."`
}

// defaults are the variables of the tags above.
var defaults = map[string]string{
	"strategies": strings.Join(usualStrategies, ","), "usual_scenario": usualScenario,
	"shops": fmt.Sprint(matrix.DefaultShops), "workers": fmt.Sprint(matrix.DefaultWorkers),
	"retry": matrix.DefaultRetry.String(), "work": matrix.DefaultWork.String(),
	"stage_lease": stageLease.String(),
}

// maxRequests bounds --requests, whose default depends on --rate.
const maxRequests = 10_000_000

// plan makes a plan with these settings, and without cells.
func (how settings) plan() (matrix.Plan, error) {
	shape, err := load.ParseShape(how.Rate)
	if err != nil {
		return matrix.Plan{}, usage("--rate is %s: %w", how.Rate, err)
	}
	shops, err := givenShops(how.Shop, how.Trace)
	if err != nil {
		return matrix.Plan{}, err
	}
	plan := matrix.Plan{
		Seed: how.Seed, Shops: how.Shops, Stock: given(how.Stock), Requests: given(how.Requests), Workers: how.Workers, Shape: shape,
		Trace: how.Trace, Binlog: how.Binlog, MySQLSet: how.MySQLSet, Lease: given(how.Lease), Wait: given(how.Wait), Retry: how.Retry, Work: how.Work,
		MySQL: how.MySQL, Redis: how.Redis, RedisServer: string(how.RedisServer), Given: shops,
	}
	return plan, checkAddresses(plan)
}

// choose completes a plan with the cells that are asked for, and with its defaults. The strategies
// are those of the shop.
func choose(plan matrix.Plan, what selection, shop *catalog.Catalog) (matrix.Plan, error) {
	pairs, err := what.pairs(shop)
	if err != nil {
		return plan, err
	}
	plan.Pairs, plan.Runs, plan.Parallel, plan.Offered = pairs, what.Runs, given(what.Parallel), shop.Strategies
	plan.Strategies = slices.DeleteFunc(shop.All(), func(s declared.Strategy) bool {
		return !slices.ContainsFunc(pairs, func(p matrix.Pair) bool { return p.Strategy.Name == s.Name })
	})
	if len(plan.Given) > 0 && plan.Parallel > 1 {
		return plan, usage("--parallel is %d: with --shop, cells run one after another", plan.Parallel)
	}
	if ofAFew(plan) && (len(plan.Given) > 0 || plan.MySQL != "" || plan.Redis != "") {
		return plan, usage("the scenarios of baskets, reservations and topologies stop and kill shops and servers: the lab starts all of them itself, without --shop, --mysql and --redis")
	}
	one := plan.OneServer()
	switch {
	case len(one.Pairs) == 0:
	case one.Requests > maxRequests:
		return plan, usage("--rate %s sends %d requests: want at most %d, or --requests", one.Shape, one.Requests, maxRequests)
	case int64(one.Requests) <= one.Stock:
		return plan, usage("--requests is %d for a stock of %d: want more demand than stock, or no oversell can be seen", one.Requests, one.Stock)
	}
	return plan, nil
}

// ofAFew reports whether there are cells of baskets or of topologies.
func ofAFew(plan matrix.Plan) bool {
	return slices.ContainsFunc(plan.Pairs, func(p matrix.Pair) bool { return p.Scenario.Few != nil })
}

// given is the value of a setting, or zero for one that is not given.
func given[T any](setting *T) (value T) {
	if setting != nil {
		value = *setting
	}
	return value
}

// pairs are the cells in the order of the tables: scenario by scenario. Of a group, the pairs that mean nothing are
// left out; one that was named is refused.
func (s selection) pairs(shop *catalog.Catalog) (pairs []matrix.Pair, err error) {
	for _, cell := range expandTelling(s.Cells, shop.Strategies) {
		strategy, under, ok := strings.Cut(cell, ":")
		if !ok {
			return nil, usage("--cells %q: want STRATEGY:SCENARIO, or telling", cell)
		}
		one := selection{Strategies: []string{strategy}, Scenarios: []string{under}}
		more, err := one.crossed(shop, "--cells", "--cells")
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, more...)
	}
	if len(s.Cells) == 0 {
		return s.crossed(shop, "--strategies", "--scenarios")
	}
	var named []string // in their order
	seen := map[string]bool{}
	pairs = slices.DeleteFunc(pairs, func(p matrix.Pair) bool {
		named = append(named, p.Scenario.Name)
		name := p.Strategy.Name + ":" + p.Scenario.Name
		twice := seen[name]
		seen[name] = true
		return twice
	})
	slices.SortStableFunc(pairs, func(a, b matrix.Pair) int {
		return slices.Index(named, a.Scenario.Name) - slices.Index(named, b.Scenario.Name)
	})
	return pairs, nil
}

// crossed is every strategy under every scenario.
func (s selection) crossed(shop *catalog.Catalog, ofStrategies, ofScenarios string) (pairs []matrix.Pair, err error) {
	for _, name := range s.Scenarios {
		name = strings.TrimSpace(name)
		under := scenario.Group(name)
		if len(under) == 0 {
			sc, err := scenario.ByName(name)
			if err != nil {
				return nil, usage("%s: %w, or one of the groups %s", ofScenarios, err, strings.Join(scenario.Groups(), ", "))
			}
			under = []trial.Scenario{sc}
		}
		for _, sc := range under {
			strategies := s.Strategies
			if sc.Few != nil && slices.Equal(strategies, usualStrategies) { // nobody has chosen these
				strategies = []string{"all"}
			}
			all, byName := shop.Under(sc)
			if len(under) > 1 { // a name may be of another kind of scenario of the group
				byName = shop.Any
			}
			found, err := named(strategies, all, byName)
			if err != nil {
				return nil, usage("%s: %w, or all", ofStrategies, err)
			}
			for _, st := range found {
				switch {
				case sc.Applies(st):
					if !slices.ContainsFunc(pairs, func(p matrix.Pair) bool { return p.Strategy.Name == st.Name && p.Scenario.Name == sc.Name }) {
						pairs = append(pairs, matrix.Pair{Strategy: st, Scenario: sc})
					}
				case len(under) == 1 && slices.Contains(strategies, st.Name):
					return nil, usage("%s is no cell of %s: run --scenarios %s --expect-only lists those that are", sc.Name, st.Name, sc.Name)
				}
			}
		}
	}
	if len(pairs) == 0 {
		return nil, usage("%s and %s: no cell is of these", ofStrategies, ofScenarios)
	}
	return pairs, nil
}

// tellingCells stands for the telling cell of each strategy in --cells.
const tellingCells = "telling"

// expandTelling replaces the word telling with the telling cell of each strategy.
func expandTelling(cells []string, of []declared.Strategy) []string {
	var expanded []string
	for _, cell := range cells {
		if cell != tellingCells {
			expanded = append(expanded, cell)
			continue
		}
		for _, s := range of {
			expanded = append(expanded, s.Name+":"+s.Telling)
		}
	}
	return expanded
}

// named finds what a flag names, in the order of the list and without repetition.
func named[T any](names []string, all []T, byName func(string) (T, error)) ([]T, error) {
	var found []T
	seen := map[string]bool{}
	everything := false
	for _, name := range names {
		name = strings.TrimSpace(name)
		if name == "all" {
			everything = true
			continue
		}
		item, err := byName(name)
		if err != nil {
			return nil, err
		}
		if !seen[name] {
			seen[name] = true
			found = append(found, item)
		}
	}
	switch {
	case everything:
		return all, nil
	case len(found) == 0:
		return nil, errors.New("want at least one")
	}
	return found, nil
}

func checkAddresses(plan matrix.Plan) error {
	if len(plan.MySQLSet) > 0 && plan.MySQL != "" {
		return usage("--mysql-set is for a MySQL that loadtest starts: the one of --mysql has its own settings")
	}
	if plan.Binlog && plan.MySQL != "" {
		return usage("--binlog is for a MySQL that loadtest starts: the one of --mysql has its own settings")
	}
	if plan.RedisServer != "" && (plan.Redis != "" || len(plan.Given) > 0) {
		return usage("--redis-server is for a Redis that loadtest starts: with --redis or --shop there is one")
	}
	if plan.MySQL != "" {
		store, err := stock.Open(plan.MySQL)
		if err != nil {
			return usage("--mysql: %w", err)
		}
		store.Close()
	}
	if plan.Redis != "" {
		client, err := redisconn.Open(plan.Redis)
		if err != nil {
			return usage("--redis: want redis://host:6379: %w", err)
		}
		client.Close()
	}
	if len(plan.Given) > 0 && plan.MySQL == "" {
		return usage("--shop needs --mysql: the audit asks the shops' own database")
	}
	return nil
}

// givenShops reads URL or URL=TRACEFILE. Traces say something only where every shop has one.
func givenShops(values []string, trace bool) ([]trial.Shop, error) {
	var shops []trial.Shop
	traced := 0
	for _, value := range values {
		address, file, named := strings.Cut(value, "=")
		if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, usage("--shop %q is no address: want http://host:port, or http://host:port=TRACEFILE", matrix.Redacted(address))
		}
		if named && file == "" {
			return nil, usage("--shop %s=: want the name of the shop's trace, or no =", matrix.Redacted(address))
		}
		if !trace {
			file = ""
		}
		if file != "" {
			traced++
		}
		shops = append(shops, trial.Shop{URL: address, Trace: file})
	}
	if traced > 0 && traced < len(shops) {
		return nil, usage("--shop: %d of %d shops have a trace: want one for each, or none", traced, len(shops))
	}
	return shops, nil
}
