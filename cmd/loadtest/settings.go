package main

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/trial"
	"stocklock/internal/stock"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/ladder"
)

// selection is which cells to run.
type selection struct {
	Strategies []string `default:"none,setnx,set-ex-nx,owner-checked,reentrant" help:"Which strategies, or all: ${strategies}."`
	Scenarios  []string `default:"contention" help:"Under which scenarios, or all: ${scenarios}."`
	Cells      []string `placeholder:"STRATEGY:SCENARIO" help:"Run just these cells, instead of every strategy under every scenario; or telling: each strategy under the scenario that shows most about it."`
	Runs       int      `default:"1" help:"How often to run each cell, each time with another seed."`
	Parallel   *int     `placeholder:"N" help:"How many cells to run side by side, each with shops and a Redis of its own. Without it 1 under contention, where numbers are compared, and 4 for the other scenarios."`
}

// settings say how cells are run.
type settings struct {
	Shops    int    `default:"3" help:"How many shop processes sell at once."`
	Stock    *int64 `placeholder:"UNITS" help:"Units there are to sell. Without it 100, and 30 where other scenarios than contention are run."`
	Requests *int   `placeholder:"N" help:"Requests under contention, after which the load ends. Without it four times the stock, or what a --rate with an end sends. The other scenarios go on until all is sold."`
	Workers  int    `default:"12" help:"Customers who buy at the same time, each waiting for an answer before the next try."`
	Rate     string `placeholder:"SHAPE" help:"Requests a second, sent whether or not earlier ones were answered, by at most 1000 customers: 200; 200/10s, for a time; 200..2000/30s, growing; 100,500,1000/10s, steps of ten seconds each. Without it as fast as the workers can."`
	Seed     uint64 `default:"1" help:"What the schedules of faults are made from: the same seed, the same schedule."`

	Lease *time.Duration `env:"LOADTEST_LEASE" placeholder:"DURATION" help:"How long a lock lives without renewal. Without it 2s, and 500ms where other scenarios than contention are run."`
	Wait  *time.Duration `env:"LOADTEST_WAIT" placeholder:"DURATION" help:"How long a sale waits for its lock. Without it 5s under contention, and three quarters of the lease for the other scenarios."`
	Retry time.Duration  `env:"LOADTEST_RETRY" default:"2ms" help:"Pause between two tries of locks that poll."`
	Work  time.Duration  `env:"LOADTEST_WORK" default:"10ms" help:"Work inside the section, between reading the stock and writing it."`

	MySQL string   `name:"mysql" env:"LOADTEST_MYSQL" placeholder:"DSN" help:"A MySQL or MariaDB to use: user:password@tcp(host:3306)/database."`
	Redis string   `env:"LOADTEST_REDIS" placeholder:"URL" help:"A Redis or Valkey to use: redis://host:6379."`
	Shop  []string `env:"LOADTEST_SHOP" placeholder:"URL" help:"A shop in lab mode to use, once for each. Needs --mysql, for the audit: the same database. Tell --lease, --wait, --retry and --work as the shops have them."`
	Trace bool     `default:"true" negatable:"" help:"Record what happens in every sale, so that a failure can be explained."`
}

// chosen is what to run, checked and with its defaults filled in.
type chosen struct {
	selection
	settings
	strategies []strategy.Strategy
	scenarios  []scenario.Scenario
	wanted     map[[2]string]bool // cells, by names
	options    trial.Options

	// The settings of these names, where none is given with what is best for what is run.
	Parallel, Requests int
	Stock              int64
	Lease, Wait        time.Duration
}

// wants says whether a cell is to be run.
func (ch chosen) wants(s strategy.Strategy, sc scenario.Scenario) bool {
	return ch.wanted[[2]string{s.Name, sc.Name}]
}

// maxOpenWorkers bounds how many requests an open rate keeps under way.
const maxOpenWorkers = 1000

// choose checks what is asked for and fills in what is not.
func choose(what selection, how settings) (chosen, error) {
	ch := chosen{selection: what, settings: how, wanted: map[[2]string]bool{}}
	ofStrategies, ofScenarios := "--strategies", "--scenarios"
	if len(what.Cells) > 0 {
		ch.Strategies, ch.Scenarios = nil, nil
		ofStrategies, ofScenarios = "--cells", "--cells"
	}
	for _, cell := range expandTelling(what.Cells) {
		s, sc, ok := strings.Cut(cell, ":")
		if !ok {
			return ch, usage("--cells %q: want STRATEGY:SCENARIO, or telling", cell)
		}
		ch.wanted[[2]string{s, sc}] = true
		ch.Strategies = append(ch.Strategies, s)
		ch.Scenarios = append(ch.Scenarios, sc)
	}
	var err error
	if ch.strategies, err = named(ch.Strategies, ladder.All(), ladder.ByName); err != nil {
		return ch, usage("%s: %w, or all", ofStrategies, err)
	}
	if ch.scenarios, err = named(ch.Scenarios, scenario.All(), scenario.ByName); err != nil {
		return ch, usage("%s: %w, or all", ofScenarios, err)
	}
	for _, s := range ch.strategies {
		for _, sc := range ch.scenarios {
			if len(what.Cells) == 0 {
				ch.wanted[[2]string{s.Name, sc.Name}] = true
			}
		}
	}
	comparison := len(ch.scenarios) == 1 && ch.scenarios[0].Attacks == strategy.Exclusive
	ch.Stock = pick(how.Stock, comparison, 100, 30)
	ch.Lease = pick(how.Lease, comparison, 2*time.Second, 500*time.Millisecond)
	ch.Wait = pick(how.Wait, comparison, 5*time.Second, ch.Lease*3/4)
	ch.Parallel = pick(what.Parallel, comparison || len(ch.Shop) > 0, 1, 4)
	shape, err := trial.ParseShape(ch.Rate)
	if err != nil {
		return ch, usage("--rate is %s: %w", ch.Rate, err)
	}
	n, ends := shape.Total()
	ch.Requests = pick(how.Requests, ends && comparison, n, 4*int(ch.Stock))
	if err := ch.check(); err != nil {
		return ch, err
	}
	workers := ch.Workers
	if !shape.IsZero() {
		workers = maxOpenWorkers
	}
	ch.Parallel = min(ch.Parallel, len(ch.strategies)*len(ch.scenarios)*ch.Runs)
	ch.options = trial.Options{
		Stock: ch.Stock, Requests: ch.Requests, Workers: workers, Shape: shape, Timeout: ch.Wait + 20*time.Second,
		Options: strategy.Options{Lease: ch.Lease, Wait: ch.Wait, Retry: ch.Retry, OneProcess: ch.Shops == 1},
	}
	return ch, nil
}

// expandTelling puts the telling cell of each strategy in the place of the word.
func expandTelling(cells []string) []string {
	var expanded []string
	for _, cell := range cells {
		if cell != "telling" {
			expanded = append(expanded, cell)
			continue
		}
		for _, s := range ladder.All() {
			expanded = append(expanded, s.Name+":"+s.Telling)
		}
	}
	return expanded
}

// pick is what is given, or a default that depends on what is run.
func pick[T any](given *T, comparison bool, forComparison, otherwise T) T {
	switch {
	case given != nil:
		return *given
	case comparison:
		return forComparison
	default:
		return otherwise
	}
}

func (ch chosen) check() error {
	for _, limit := range []struct {
		flag          string
		value, lo, hi int64
	}{
		{"--shops", int64(ch.Shops), 1, 64},
		{"--stock", ch.Stock, 1, 1_000_000},
		{"--requests", int64(ch.Requests), 1, 10_000_000},
		{"--workers", int64(ch.Workers), 1, 1000},
		{"--runs", int64(ch.Runs), 1, 1000},
		{"--parallel", int64(ch.Parallel), 1, 16},
	} {
		if limit.value < limit.lo || limit.value > limit.hi {
			return usage("%s is %d, want %d to %d", limit.flag, limit.value, limit.lo, limit.hi)
		}
	}
	for _, limit := range []struct {
		flag          string
		value, lo, hi time.Duration
	}{
		{"--lease", ch.Lease, 100 * time.Millisecond, time.Minute},
		{"--wait", ch.Wait, time.Millisecond, time.Minute},
		{"--retry", ch.Retry, time.Millisecond, 10 * time.Second},
		{"--work", ch.Work, 0, 10 * time.Second},
	} {
		if limit.value < limit.lo || limit.value > limit.hi {
			return usage("%s is %s, want %s to %s", limit.flag, limit.value, limit.lo, limit.hi)
		}
	}
	if int64(ch.Requests) <= ch.Stock {
		return usage("--requests is %d for a stock of %d: want more demand than stock, or no oversell can be seen", ch.Requests, ch.Stock)
	}
	return ch.checkAddresses()
}

func (ch chosen) checkAddresses() error {
	if ch.MySQL != "" {
		store, err := stock.Open(ch.MySQL)
		if err != nil {
			return usage("--mysql: %w", err)
		}
		store.Close()
	}
	if ch.Redis != "" {
		if _, err := redis.ParseURL(ch.Redis); err != nil {
			return usage("--redis: want redis://host:6379: %w", err)
		}
	}
	if len(ch.Shop) > 0 && ch.MySQL == "" {
		return usage("--shop needs --mysql: the audit asks the shops' own database")
	}
	if len(ch.Shop) > 0 && ch.Parallel > 1 {
		return usage("--parallel is %d: with --shop, cells run one after another", ch.Parallel)
	}
	for _, shop := range ch.Shop {
		if u, err := url.Parse(shop); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return usage("--shop %q is no address: want http://host:port", withoutPassword(shop))
		}
	}
	return nil
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

// replay is the command that runs one cell again. Addresses with passwords come from the environment.
func (ch chosen) replay(c trial.Cell) string {
	words := []string{"loadtest run", "--strategies", c.Strategy.Name, "--scenarios", c.Scenario.Name, "--seed", fmt.Sprint(c.Seed),
		"--stock", fmt.Sprint(ch.Stock), "--requests", fmt.Sprint(ch.Requests),
		"--workers", fmt.Sprint(ch.Workers), "--lease", ch.Lease.String(), "--wait", ch.Wait.String(),
		"--retry", ch.Retry.String(), "--work", ch.Work.String()}
	for _, shop := range ch.Shop {
		words = append(words, "--shop", withoutPassword(shop))
	}
	if len(ch.Shop) == 0 {
		words = append(words, "--shops", fmt.Sprint(ch.Shops))
	}
	if ch.MySQL != "" {
		words = append(words, `--mysql "$LOADTEST_MYSQL"`)
	}
	if ch.Redis != "" {
		words = append(words, `--redis "$LOADTEST_REDIS"`)
	}
	if rate := ch.options.Shape.String(); rate != "" {
		words = append(words, "--rate", rate)
	}
	return strings.Join(words, " ")
}
