package main

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/cells"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/soak"
	"stocklock/internal/lab/trial"
	"stocklock/internal/redisconn"
	"stocklock/internal/stock"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/testserver"
)

// settings say how cells are run. Package matrix has the defaults that depend on what is run.
type settings struct {
	Shops    int    `default:"${shops}" min:"1" max:"64" help:"How many shop processes sell at once."`
	Stock    *int64 `placeholder:"UNITS" min:"1" max:"1000000" help:"Units to sell. Without it 100, nine tenths of the requests of a --rate with an end, and 30 where other scenarios than contention are run."`
	Requests *int   `placeholder:"N" min:"1" max:"10000000" help:"Requests under contention, after which the load ends. Without it four times the stock, or what a --rate with an end sends. The other scenarios go on until all is sold."`
	Workers  int    `default:"${workers}" min:"1" max:"1000" help:"Customers who buy at the same time, without --rate. Each waits for an answer before the next try."`
	Rate     string `placeholder:"SHAPE" help:"Requests a second, sent whether or not earlier ones were answered, by at most 1000 customers: ${shapes}. Without it as fast as the workers can."`
	Seed     uint64 `default:"1" help:"The seed of the fault schedules. The same seed gives the same requests the same faults. In which order the requests are served is not kept, so counts differ from run to run."`

	Lease *time.Duration `env:"LOADTEST_LEASE" placeholder:"DURATION" min:"100ms" max:"1m" help:"How long a lock lives without renewal. Without it 10s, and 500ms where other scenarios than contention are run."`
	Wait  *time.Duration `env:"LOADTEST_WAIT" placeholder:"DURATION" min:"1ms" max:"1m" help:"How long a sale waits for its lock. Without it 5s under contention, and three quarters of the lease for the other scenarios."`
	Retry time.Duration  `env:"LOADTEST_RETRY" default:"${retry}" min:"1ms" max:"10s" help:"Pause between two tries of locks that poll."`
	Work  *time.Duration `env:"LOADTEST_WORK" placeholder:"DURATION" min:"0s" max:"10s" help:"Work inside the section, between reading the stock and writing it. Without it ${work} under contention, and none for the other scenarios."`

	servers `embed:""`

	MySQL string   `name:"mysql" env:"LOADTEST_MYSQL" placeholder:"DSN" help:"A MySQL or MariaDB to use: user:password@tcp(host:3306)/database."`
	Redis string   `env:"LOADTEST_REDIS" placeholder:"URL" help:"A Redis or Valkey to use: redis://host:6379."`
	Shop  []string `env:"LOADTEST_SHOP" placeholder:"URL[=TRACEFILE]" help:"A shop in lab mode to use, once for each, and the file of its SHOP_TRACE where that can be read here. Needs --mysql, for the audit: the same database. Give --lease, --wait, --retry and --work as the shops have them."`
}

// defaults are the variables of the tags above.
var defaults = map[string]string{
	"usual": strings.Join(cells.Usual, " "),
	"shops": fmt.Sprint(matrix.DefaultShops), "workers": fmt.Sprint(matrix.DefaultWorkers),
	"retry": matrix.DefaultRetry.String(), "work": matrix.DefaultWork.String(),
	"stage_lease": stageLease.String(), "binlog": testserver.Binlog, "as": strings.Join([]string{asOneShop, asBaskets, asReservations}, ","),
	"shapes": load.Help(), "metrics": strings.Join(report.Metrics(), ", "), "faults": strings.Join(soak.Faults(), "; "),
}

// maxRequests bounds --requests, whose default depends on --rate.
const maxRequests = 10_000_000

// plan makes a plan with these settings, and without cells.
func (how settings) plan() (matrix.Plan, error) {
	shape, err := load.ParseShape(how.Rate)
	if err != nil {
		return matrix.Plan{}, usage("--rate is %s: %w", how.Rate, err)
	}
	shops, err := givenShops(how.Shop)
	if err != nil {
		return matrix.Plan{}, err
	}
	plan := matrix.Plan{
		Seed: how.Seed, Shops: how.Shops, Stock: given(how.Stock), Requests: given(how.Requests), Workers: how.Workers, Shape: shape,
		MySQLSet: how.MySQLSet, Lease: given(how.Lease), Wait: given(how.Wait), Retry: how.Retry, Work: how.Work,
		MySQL: how.MySQL, Redis: how.Redis, RedisServer: string(how.RedisServer), Given: shops,
	}
	return plan, checkAddresses(plan)
}

// choose completes a plan with the cells that words choose, and with its defaults. The strategies are those of the
// shop.
func choose(plan matrix.Plan, words []string, shop *catalog.Catalog) (_ matrix.Plan, err error) {
	if plan.Pairs, err = cells.Pairs(words, shop); err != nil {
		return plan, usage("%w", err)
	}
	plan.Offered = shop.Strategies
	plan.Strategies = slices.DeleteFunc(shop.All(), func(s declared.Strategy) bool {
		return !slices.ContainsFunc(plan.Pairs, func(p matrix.Pair) bool { return p.Strategy.Name == s.Name })
	})
	if len(plan.Given) > 0 && plan.Parallel > 1 {
		return plan, usage("--parallel is %d: with --shop, cells run one after another", plan.Parallel)
	}
	if ofAFew(plan) && (len(plan.Given) > 0 || plan.MySQL != "" || plan.Redis != "") {
		return plan, usage("the scenarios of baskets, reservations and topologies stop and kill shops and servers: the lab starts all of them itself, without --shop, --mysql and --redis")
	}
	one := plan.OneServer()
	for _, p := range one.Pairs {
		switch of := one.Of(p.Scenario); {
		case of.Requests > maxRequests:
			return plan, usage("--rate %s sends %d requests: want at most %d, or --requests", of.Shape, of.Requests, maxRequests)
		case int64(of.Requests) <= of.Stock:
			return plan, usage("--requests is %d for a stock of %d: want more demand than stock, or no oversell can be seen", of.Requests, of.Stock)
		}
	}
	return plan, nil
}

// ofAFew reports whether there are cells of a few customers: of baskets, reservations or topologies.
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

func checkAddresses(plan matrix.Plan) error {
	if len(plan.MySQLSet) > 0 && plan.MySQL != "" {
		return usage("--mysql-set is for a MySQL that loadtest starts: the one of --mysql has its own settings")
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
func givenShops(values []string) ([]trial.Shop, error) {
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
