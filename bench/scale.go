package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"golang.org/x/perf/benchfmt"

	"stocklock/bench/measure"
	"stocklock/internal/lab/bench"
	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/soak"
	"stocklock/internal/lab/tabular"
	"stocklock/internal/lab/topology"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/testserver"
)

// scaleCommand measures how sales grow with items, shops and servers. Every number is a ratio to one
// of the same round, so that all meet the same noise. It shows no effect that needs several machines.
type scaleCommand struct {
	What        string        `arg:"" optional:"" enum:"items,hot,baskets,topologies,crowds" default:"items" help:"What grows: items, shops and Redis servers (items); the customers of one item, by strategies of each kind (hot); the lines of an order, by each way that sells them right (baskets); the servers of the database, without any fault (topologies); the connections of one shop with its default settings (crowds)."`
	Repeat      int           `default:"3" min:"1" max:"100" help:"How often each number is measured. The ratios are medians."`
	Each        time.Duration `default:"5s" min:"100ms" max:"1h" help:"How long each number is measured in a round."`
	Work        time.Duration `default:"5ms" min:"0s" max:"1s" help:"Work inside the section, between reading the stock and writing it. It counts for items alone."`
	Workers     int           `default:"48" min:"1" max:"1000" help:"Customers who buy at the same time. Crowds have their connections, and hot has 48 and 200."`
	Connections []int         `default:"100,1500" help:"The crowds, each of 1 to 10000 connections. Each connection orders again as soon as it is answered."`
	RedisServer string        `env:"LOADTEST_REDIS_SERVER" type:"existingfile" placeholder:"FILE" help:"The program to start as Redis. Without it the one of this machine."`
	ShopBinary  string        `env:"LOADTEST_SHOP_BINARY" type:"existingfile" placeholder:"FILE" help:"The shop to start, built with the tag lab. Without it the one of this checkout."`
	kept        `embed:""`

	shop string // the program
	log  io.Writer
	open []*bench.Bench
}

// demand is what one cell of the table sells.
type demand struct {
	row, column string
	base        string // the ratio is to the first demand of the same base
	on          *ground
	soak.Demand
}

// ground is shops that sell, and their servers.
type ground struct {
	*rig.Testbed
	servers *bench.Bench
	redis   []*testserver.Redis // whose commands are counted; none to count nothing
}

// copied waits until all servers of a topology have what the first one has.
func (g *ground) copied(ctx context.Context) error {
	if g.servers.Database == nil {
		return nil
	}
	return g.servers.Database.Copied(ctx)
}

// The units of a scale besides [measure.OfFirst].
const (
	unitsSold   = "units/s"
	rejectedOf  = "rejected-of-sold"
	busiestUnit = "busiest-redis"
	p99OfFirst  = "p99-of-first"
)

func (c *scaleCommand) check() error {
	if len(c.Connections) == 0 || slices.Min(c.Connections) < 1 || slices.Max(c.Connections) > 10_000 {
		return errors.New("--connections: want one number or more, each of 1 to 10000")
	}
	return c.kept.check()
}

// run measures and returns the exit code. It fails when the database has other orders than were answered.
func (c *scaleCommand) run(ctx context.Context, stdout, stderr io.Writer) (code int, err error) {
	shop, err := catalog.Open(ctx, c.ShopBinary)
	if err != nil {
		return exitFailed, err
	}
	defer func() { err = cmp.Or(err, shop.Close()) }()
	defer func() {
		for _, servers := range c.open {
			err = cmp.Or(err, servers.Close())
		}
	}()
	c.shop, c.log = shop.Program, stderr
	fmt.Fprintln(stderr, "starting the servers and the shops")
	demands, notes, err := map[string]func(context.Context, *catalog.Catalog) ([]demand, []string, error){
		"items": c.items, "hot": c.hot, "baskets": c.baskets, "topologies": c.topologies, "crowds": c.crowds,
	}[c.What](ctx, shop)
	if err != nil {
		return exitFailed, err
	}
	redis, err := rig.RedisVersion(ctx, demands[0].on.Redis().Client)
	if err != nil {
		return exitFailed, err
	}
	config := append(measure.Machine(), measure.Configure("redis", strings.TrimPrefix(redis, "Redis "), "mysql", c.open[0].Version,
		"each", c.Each.String(), "work", c.Work.String(), "workers", strconv.Itoa(c.Workers))...)
	results, err := c.measure(ctx, demands, config)
	if err != nil {
		return exitFailed, err
	}
	tables := measure.Tables(results)
	c.print(stdout, demands, tables)
	for _, note := range notes {
		fmt.Fprintln(stdout, note)
	}
	fmt.Fprintf(stdout, "units sold, as ratios; medians of %d rounds of %s · %d cores for everything\n", c.Repeat, c.Each, runtime.NumCPU())
	return c.kept.finish(ctx, stdout, results, tables)
}

// measure measures every demand once in each round.
func (c *scaleCommand) measure(ctx context.Context, demands []demand, config []benchfmt.Config) (results []*benchfmt.Result, err error) {
	for round := range c.Repeat {
		sold, busy := make([]soak.Supply, len(demands)), make([]float64, len(demands))
		for n := range demands {
			i := (n + round) % len(demands) // none is always first
			d := demands[i]
			fmt.Fprintf(c.log, "%d/%d  %s, %s\n", round+1, c.Repeat, d.row, d.column)
			before, err := d.on.commands(ctx)
			if err != nil {
				return nil, err
			}
			d.Created, d.Each = d.on.copied, c.Each
			sold[i], err = soak.Measure(ctx, d.on.servers.Store, d.Demand)
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", d.row, d.column, err)
			}
			after, err := d.on.commands(ctx)
			if err != nil {
				return nil, err
			}
			if len(after) > 1 {
				busy[i] = busiest(before, after)
			}
		}
		base := map[string]soak.Supply{}
		for i, d := range demands {
			got := sold[i]
			first := cmp.Or(base[d.base], got)
			base[d.base] = first
			s := measure.Sample{Operations: int(got.Sold * c.Each.Seconds()), Values: []benchfmt.Value{
				{Value: got.Sold / first.Sold, Unit: measure.OfFirst}, {Value: got.Sold, Unit: unitsSold}, {Value: got.Rejected / got.Orders, Unit: rejectedOf},
				{Value: got.P99.Seconds() / first.P99.Seconds(), Unit: p99OfFirst}}}
			if busy[i] > 0 {
				s.Values = append(s.Values, benchfmt.Value{Value: busy[i], Unit: busiestUnit})
			}
			results = append(results, measure.NewResult(c.table(d), d.row, config, s))
		}
	}
	return results, nil
}

// table is the name of a column among results.
func (c *scaleCommand) table(d demand) string { return "Scale/" + c.What + "/" + d.column }

// commands returns how many commands each Redis server has executed.
func (g *ground) commands(ctx context.Context) (done []float64, err error) {
	for _, server := range g.redis {
		info, err := server.Client.Do(ctx, "INFO", "stats").Info()
		if err != nil {
			return nil, err
		}
		n, err := strconv.ParseFloat(info["total_commands_processed"], 64)
		if err != nil {
			return nil, err
		}
		done = append(done, n)
	}
	return done, nil
}

// busiest is the share of the busiest server.
func busiest(before, after []float64) float64 {
	var most, all float64
	for i := range after {
		did := after[i] - before[i]
		most, all = max(most, did), all+did
	}
	return most / all
}

// print writes a table whose columns are those of the demands.
func (c *scaleCommand) print(out io.Writer, demands []demand, tables []measure.Table) {
	var rows, columns []string
	cells := map[[2]string]string{}
	for _, d := range demands {
		if !slices.Contains(rows, d.row) {
			rows = append(rows, d.row)
		}
		if !slices.Contains(columns, d.column) {
			columns = append(columns, d.column)
		}
		of := measure.TableOf(tables, c.table(d)).Row(d.row)
		cell := fmt.Sprintf("× %.2f", of.Median(measure.OfFirst))
		if rejected := of.Median(rejectedOf); rejected >= 0.05 {
			cell = fmt.Sprintf("%.1f rejected for each, %s", rejected, cell)
		}
		if share := of.Median(busiestUnit); share > 0 {
			cell = fmt.Sprintf("busiest Redis %.0f %%, %s", 100*share, cell)
		}
		cells[[2]string{d.row, d.column}] = cell
	}
	w := tabular.New()
	header := table.Row{""}
	for _, column := range columns {
		header = append(header, strings.Replace(column, ", ", "\n", 1))
	}
	w.AppendHeader(header)
	for _, name := range rows {
		row := table.Row{name}
		for _, column := range columns {
			row = append(row, cmp.Or(cells[[2]string{name, column}], "–"))
		}
		w.AppendRow(row)
	}
	w.SetColumnConfigs(tabular.Right(2, len(header)))
	fmt.Fprintln(out, w.Render())
}

// start starts servers, which end with the command, and shops on them.
func (c *scaleCommand) start(ctx context.Context, o bench.Options, shops rig.TestbedOptions) (*ground, error) {
	o.Shop, o.Redis = c.shop, c.RedisServer
	servers, err := bench.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	c.open = append(c.open, servers)
	testbed, err := servers.Testbed(ctx, shops)
	return &ground{Testbed: testbed, servers: servers}, err
}

// patient are the settings of shops whose customers wait for their locks.
func patient(work time.Duration) map[string]string {
	return map[string]string{"SHOP_LAB": "true", "SHOP_LAB_WORK": work.String(), "SHOP_LOG_LEVEL": "error", "SHOP_WAIT": "20s"}
}

const masters = 3

// items sells from one shop and from three, on one Redis and on a Cluster, without a binlog and with one.
func (c *scaleCommand) items(ctx context.Context, _ *catalog.Catalog) (demands []demand, _ []string, err error) {
	for _, on := range []struct {
		column string
		mysql  []string
	}{{"sold", nil}, {"with a binlog", testserver.WithBinlog}} {
		one, err := c.start(ctx, bench.Options{MySQL: on.mysql}, rig.TestbedOptions{Name: "shop", Shops: 3, Env: patient(c.Work)})
		if err != nil {
			return nil, nil, err
		}
		cluster, err := one.servers.RedisCluster(ctx, masters)
		if err != nil {
			return nil, nil, err
		}
		several := &ground{servers: one.servers, redis: cluster}
		several.Testbed, err = one.servers.Testbed(ctx, rig.TestbedOptions{Name: "shop-of-cluster", Shops: 3, RedisURL: cluster.URL(), Env: patient(c.Work)})
		if err != nil {
			return nil, nil, err
		}
		for _, row := range []struct {
			name, strategy      string
			items, units, shops int
			on                  *ground
		}{
			{"one hot item, by fenced", "fenced", 1, 1, 1, one},
			{"its stock split into 4 items", "fenced", 4, 1, 1, one},
			{"its orders batched by 10", "fenced", 1, 10, 1, one},
			{"without a lock, by conditional", "conditional", 1, 1, 1, one},
			{"from three shops, by fenced", "fenced", 1, 1, 3, one},
			{"from three shops, on a Cluster", "fenced", 1, 1, 3, several},
			{"from three shops, by conditional", "conditional", 1, 1, 3, one},
			{"from three shops, by batched", "batched", 1, 1, 3, one},
			{"64 items, by fenced", "fenced", 64, 1, 1, one},
			{"64 items, by conditional", "conditional", 64, 1, 1, one},
			{"64 items, three shops, by fenced", "fenced", 64, 1, 3, one},
			{"64 items, three shops, on a Cluster", "fenced", 64, 1, 3, several},
			{"64 items, three shops, by conditional", "conditional", 64, 1, 3, one},
		} {
			demands = append(demands, demand{row: row.name, column: on.column, on: row.on, Demand: soak.Demand{
				Shops: row.on.Shops[:row.shops], Strategy: row.strategy, Items: row.items, Units: row.units, Customers: c.Workers}})
		}
	}
	return demands, nil, nil
}

// onHot are the strategies that sell one item: the base, then the ways to share its row, and those with a lock.
var onHot = []string{"conditional", "batched", "buckets", "skip-locked", "for-update", "fenced-relative", "reentrant", "fenced"}

// hot sells one item from three shops, without a binlog and with one, as MySQL has by default.
func (c *scaleCommand) hot(ctx context.Context, shop *catalog.Catalog) (demands []demand, _ []string, err error) {
	for _, on := range []struct {
		suffix string
		mysql  []string
	}{{"", nil}, {", with a binlog", testserver.WithBinlog}} {
		three, err := c.start(ctx, bench.Options{MySQL: on.mysql}, rig.TestbedOptions{Name: "shop", Shops: 3, Env: patient(0)})
		if err != nil {
			return nil, nil, err
		}
		for _, customers := range []int{48, 200} {
			column := fmt.Sprintf("%d customers%s", customers, on.suffix)
			for _, name := range onHot {
				of, err := shop.ByName(name)
				if err != nil {
					return nil, nil, err
				}
				demands = append(demands, demand{row: name, column: column, base: column, on: three, Demand: soak.Demand{
					Shops: three.Shops, Strategy: name, State: of.State, Items: 1, Units: 1, Customers: customers, WarmUp: c.Each}})
			}
		}
	}
	return demands, nil, nil
}

// basketItems is how many items the baskets are taken from.
const basketItems = 64

// basketsBase is the way that the others are compared with.
const basketsBase = "conditional"

// fitForBaskets are the ways that sell nothing wrong and refuse nobody, but perhaps a basket of very many items. The base
// comes first.
func fitForBaskets(all []declared.Strategy) []string {
	var needed declared.Property
	for _, p := range declared.BasketProperties() {
		if p != declared.Unstarved {
			needed |= p
		}
	}
	fit := []string{basketsBase}
	for _, way := range all {
		outlasted := way.Properties.Meets(declared.PauseProof) || way.Properties.Has.Includes(declared.StorageChecked)
		if way.Name != basketsBase && way.Baskets.Meets(needed) && outlasted {
			fit = append(fit, way.Name)
		}
	}
	return fit
}

// baskets sells orders of several lines from one shop.
func (c *scaleCommand) baskets(ctx context.Context, shop *catalog.Catalog) (demands []demand, _ []string, err error) {
	on, err := c.start(ctx, bench.Options{}, rig.TestbedOptions{Name: "shop", Shops: 1, Env: patient(0)})
	if err != nil {
		return nil, nil, err
	}
	for _, popularity := range []struct {
		name string
		soak.Popularity
	}{{"uniform", soak.Uniform}, {"Zipf", soak.Zipf}} {
		for _, lines := range []int{1, 2, 5, 20} {
			for _, way := range fitForBaskets(shop.Baskets) {
				demands = append(demands, demand{row: way, column: fmt.Sprintf("%s, %d", popularity.name, lines), on: on, Demand: soak.Demand{
					Shops: on.Shops, Strategy: way, Items: basketItems, Popularity: popularity.Popularity, Units: 1, Lines: lines, AsPosted: true,
					Customers: c.Workers, WarmUp: c.Each / 5}})
			}
		}
	}
	return demands, []string{"rows: how several items are taken; columns: how the items are drawn, and how many lines an order has"}, nil
}

// onTopologies are the strategies that are measured there: one of each kind.
var onTopologies = []string{"conditional", "batched", "fenced-relative", "fenced", "reentrant"}

// topologies sells of one item and of 64 on every topology that can start here. What oversells there without a fault is
// left out.
func (c *scaleCommand) topologies(ctx context.Context, shop *catalog.Catalog) (demands []demand, notes []string, err error) {
	grounds := map[string]*ground{}
	for _, t := range topology.All {
		if missing := t.Missing(); missing != nil {
			notes = append(notes, fmt.Sprintf("not measured on %s: %v", t.Name, missing))
			continue
		}
		fmt.Fprintln(c.log, "starting", t.Name)
		grounds[t.Name], err = c.start(ctx, bench.Options{Topology: &t, Load: true}, rig.TestbedOptions{Env: map[string]string{"SHOP_WAIT": "20s"}})
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", t.Name, err)
		}
	}
	for _, name := range onTopologies {
		of, err := shop.ByName(name)
		if err != nil {
			return nil, nil, err
		}
		for _, items := range []int{1, 64} {
			for _, t := range topology.All {
				if grounds[t.Name] == nil || scenario.OversellsUnderLoad(t, of) {
					continue
				}
				demands = append(demands, demand{row: fmt.Sprintf("%s, items: %d", t.Name, items), column: name, base: fmt.Sprint(name, items), on: grounds[t.Name],
					Demand: soak.Demand{Shops: grounds[t.Name].Shops, Strategy: name, Items: items, Units: 1, Customers: c.Workers, WarmUp: c.Each / 5}})
			}
		}
	}
	return demands, append(notes, "–: oversells there"), nil
}

// crowds orders from one shop that is not in the lab, with its default settings.
func (c *scaleCommand) crowds(ctx context.Context, _ *catalog.Catalog) (demands []demand, _ []string, err error) {
	on, err := c.start(ctx, bench.Options{}, rig.TestbedOptions{Name: "shop", Shops: 1})
	if err != nil {
		return nil, nil, err
	}
	for _, items := range []int{1, 64} {
		column := fmt.Sprintf("items: %d", items)
		for _, n := range c.Connections {
			demands = append(demands, demand{row: fmt.Sprintf("%d connections", n), column: column, base: column, on: on,
				Demand: soak.Demand{Shops: on.Shops, Items: items, Units: 1, Customers: n, WarmUp: min(3*time.Second, c.Each)}})
		}
	}
	return demands, nil, nil
}
