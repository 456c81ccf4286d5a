// Package scale measures how sales grow with items, shops and Redis servers, and with other
// strategies for a hot item.
//
// Every number is a ratio to the first row, measured in the same minute on the same machine. It
// shows no effect that needs more than one machine.
package scale

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/soak"
	"stocklock/internal/lab/tabular"
	"stocklock/internal/stock"
	"stocklock/internal/testserver"
)

// Options are the settings of a measurement.
type Options struct {
	Shop    string        // the program that is started as the shops, empty for the one of the checkout
	Redis   string        // the program that is started as Redis, empty for the one of the machine
	Each    time.Duration // how long one row is measured in one round
	Rounds  int           // how often; the ratios are the medians
	Work    time.Duration // inside the section, between reading the stock and writing it
	Workers int           // customers who buy at once
	Log     io.Writer     // the progress
}

// Row is one setup and what it sold.
type Row struct {
	Name     string
	Strategy string
	Items    int
	Units    int // of each line
	Shops    int
	Masters  int // Redis servers: 1, or those of the Cluster

	Ratio   float64 // units sold, divided by those of the first row
	Binlog  float64 // the same where MySQL writes a binlog, divided by the first row without one
	Busiest float64 // the busiest Redis server's share of all commands
}

const masters = 3

func rows() []Row {
	return []Row{
		{Name: "one hot item", Strategy: "fenced", Items: 1, Units: 1, Shops: 1, Masters: 1},
		{Name: "its stock split into 4 items", Strategy: "fenced", Items: 4, Units: 1, Shops: 1, Masters: 1},
		{Name: "its orders batched by 10", Strategy: "fenced", Items: 1, Units: 10, Shops: 1, Masters: 1},
		{Name: "without a lock, by conditional", Strategy: "conditional", Items: 1, Units: 1, Shops: 1, Masters: 1},
		{Name: "from three shops", Strategy: "fenced", Items: 1, Units: 1, Shops: 3, Masters: 1},
		{Name: "from three shops, on a Cluster", Strategy: "fenced", Items: 1, Units: 1, Shops: 3, Masters: masters},
		{Name: "from three shops, by conditional", Strategy: "conditional", Items: 1, Units: 1, Shops: 3, Masters: 1},
		{Name: "from three shops, by batched", Strategy: "batched", Items: 1, Units: 1, Shops: 3, Masters: 1},
		{Name: "64 items", Strategy: "fenced", Items: 64, Units: 1, Shops: 1, Masters: 1},
		{Name: "64 items, conditional", Strategy: "conditional", Items: 64, Units: 1, Shops: 1, Masters: 1},
		{Name: "64 items, three shops", Strategy: "fenced", Items: 64, Units: 1, Shops: 3, Masters: 1},
		{Name: "64 items, three shops, a Cluster", Strategy: "fenced", Items: 64, Units: 1, Shops: 3, Masters: masters},
		{Name: "64 items, three shops, conditional", Strategy: "conditional", Items: 64, Units: 1, Shops: 3, Masters: 1},
	}
}

// bench has shops on a single Redis and shops on a Cluster. All share one MySQL, with or without a
// binlog.
type bench struct {
	Options
	store    *stock.Store
	servers  map[int][]*testserver.Redis // by their number
	testbeds map[int]*rig.Testbed        // by the number of their Redis servers
}

// Run measures all rows on private servers, which end with it.
func Run(ctx context.Context, o Options) (_ []Row, err error) {
	r, err := rig.New(o.Shop)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	r.RedisProgram = o.Redis
	fmt.Fprintln(o.Log, "starting MySQL without a binlog and with one; for each Redis, a Redis Cluster and the shops")
	var benches [2]*bench
	for i, options := range [][]string{nil, testserver.WithBinlog} {
		if benches[i], err = open(ctx, r, o, options); err != nil {
			return nil, err
		}
		defer benches[i].store.Close()
	}
	measured, err := measureAll(ctx, o, benches)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return measured, err
}

func open(ctx context.Context, r *rig.Rig, o Options, mysqlOptions []string) (*bench, error) {
	mysql, err := r.MySQL(ctx, mysqlOptions...)
	if err != nil {
		return nil, err
	}
	single, err := r.Redis(ctx, testserver.RedisOptions{})
	if err != nil {
		return nil, err
	}
	cluster, err := r.RedisCluster(ctx, masters)
	if err != nil {
		return nil, err
	}
	b := &bench{Options: o, servers: map[int][]*testserver.Redis{1: {single}, masters: cluster}, testbeds: map[int]*rig.Testbed{}}
	if b.store, err = audit.Open(ctx, mysql.DSN()); err != nil {
		return nil, err
	}
	for servers, url := range map[int]string{1: single.URL(), masters: cluster.URL()} {
		b.testbeds[servers], err = r.Testbed(ctx, rig.TestbedOptions{
			Name: fmt.Sprint("shop-", servers), Shops: 3, DSN: mysql.DSN(), RedisURL: url,
			Env: map[string]string{"SHOP_LAB": "true", "SHOP_LAB_WORK": o.Work.String(), "SHOP_LOG_LEVEL": "error", "SHOP_WAIT": "20s"},
		})
		if err != nil {
			return nil, errors.Join(err, b.store.Close())
		}
	}
	return b, nil
}

// measureAll measures without a binlog and with one.
func measureAll(ctx context.Context, o Options, benches [2]*bench) ([]Row, error) {
	all := rows()
	ratios := make([][2][]float64, len(all))
	for round := range o.Rounds {
		var base float64
		for i := range all {
			fmt.Fprintf(o.Log, "round %d of %d: %s\n", round+1, o.Rounds, all[i].Name)
			for of, b := range benches {
				sold, err := b.measure(ctx, &all[i])
				if err != nil {
					return nil, err
				}
				base = cmp.Or(base, sold)
				ratios[i][of] = append(ratios[i][of], sold/base)
			}
		}
	}
	for i, of := range ratios {
		all[i].Ratio, all[i].Binlog = median(of[0]), median(of[1])
	}
	return all, nil
}

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}

// measure returns how many units a second are sold. It fails when the database does not have
// exactly the orders that were answered.
func (b *bench) measure(ctx context.Context, row *Row) (unitsPerSecond float64, err error) {
	before, err := b.commands(ctx, row.Masters)
	if err != nil {
		return 0, err
	}
	sold, err := soak.Measure(ctx, b.store, soak.Demand{
		Shops: b.testbeds[row.Masters].Shops[:row.Shops], Strategy: row.Strategy, Items: row.Items, Units: row.Units, Customers: b.Workers, Each: b.Each,
	})
	if err != nil {
		return 0, fmt.Errorf("%s: %w", row.Name, err)
	}
	after, err := b.commands(ctx, row.Masters)
	if err != nil {
		return 0, err
	}
	row.Busiest = busiest(before, after)
	return sold.Sold, nil
}

// commands returns how many commands each Redis server has executed.
func (b *bench) commands(ctx context.Context, servers int) ([]float64, error) {
	done := make([]float64, servers)
	for i, server := range b.servers[servers] {
		info, err := server.Client.Do(ctx, "INFO", "stats").Info()
		if err != nil {
			return nil, err
		}
		if done[i], err = strconv.ParseFloat(info["total_commands_processed"], 64); err != nil {
			return nil, err
		}
	}
	return done, nil
}

func busiest(before, after []float64) float64 {
	var most, all float64
	for i := range after {
		did := after[i] - before[i]
		most, all = max(most, did), all+did
	}
	return most / all
}

// Print writes a table for people.
func Print(out io.Writer, rows []Row) {
	w := tabular.New()
	w.AppendHeader(table.Row{"", "strategy", "items", "shops", "Redis\nservers", "busiest\nRedis", "units\nsold", "with a\nbinlog"})
	for _, r := range rows {
		share := "–"
		if r.Strategy == "fenced" {
			share = fmt.Sprintf("%.0f %%", 100*r.Busiest)
		}
		w.AppendRow(table.Row{r.Name, r.Strategy, r.Items, r.Shops, r.Masters, share, fmt.Sprintf("× %.1f", r.Ratio), fmt.Sprintf("× %.1f", r.Binlog)})
	}
	w.SetColumnConfigs(tabular.Right(3, 8))
	fmt.Fprintln(out, w.Render())
}
