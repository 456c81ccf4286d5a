// Package scale measures how sales grow with items, shops and Redis servers, and with other
// strategies for a hot item.
//
// Every number is a ratio to the first row, measured in the same minute on the same machine. It
// shows no effect that needs more than one machine.
package scale

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"golang.org/x/sync/errgroup"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/tabular"
	"stocklock/internal/stock"
	"stocklock/internal/testserver"
)

// Options are the settings of a measurement.
type Options struct {
	Shop    string        // the program that is started as the shops, empty for the one of the checkout
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
	Units    int // of each order
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
		{Name: "64 items, three shops", Strategy: "fenced", Items: 64, Units: 1, Shops: 3, Masters: 1},
		{Name: "64 items, three shops, a Cluster", Strategy: "fenced", Items: 64, Units: 1, Shops: 3, Masters: masters},
		{Name: "64 items, three shops, conditional", Strategy: "conditional", Items: 64, Units: 1, Shops: 3, Masters: 1},
	}
}

// bench has shops on a single Redis and shops on a Cluster. All share one MySQL, with or without a
// binlog.
type bench struct {
	Options
	store   *stock.Store
	servers map[int][]*testserver.Redis // by their number
	shops   map[int][]*rig.Shop         // by the number of their Redis servers
	runs    int                         // so far
}

// Run measures all rows on private servers, which end with it.
func Run(ctx context.Context, o Options) (_ []Row, err error) {
	r, err := rig.New()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := r.UseShopBinary(o.Shop); err != nil {
		return nil, err
	}
	fmt.Fprintln(o.Log, "starting MySQL without a binlog and with one; for each Redis, a Redis Cluster and the shops")
	plain, err := open(ctx, r, o)
	if err != nil {
		return nil, err
	}
	defer plain.store.Close()
	logged, err := open(ctx, r, o, testserver.WithBinlog...)
	if err != nil {
		return nil, err
	}
	defer logged.store.Close()
	measured, err := measureAll(ctx, o, plain, logged)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return measured, err
}

func open(ctx context.Context, r *rig.Rig, o Options, mysqlOptions ...string) (*bench, error) {
	b := &bench{Options: o, servers: map[int][]*testserver.Redis{}, shops: map[int][]*rig.Shop{1: make([]*rig.Shop, 3), masters: make([]*rig.Shop, 3)}}
	mysql, err := r.MySQL(ctx, mysqlOptions...)
	if err != nil {
		return nil, err
	}
	if b.store, err = audit.Open(ctx, mysql.DSN()); err != nil {
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
	b.servers[1], b.servers[masters] = []*testserver.Redis{single}, cluster
	starting, ctx := errgroup.WithContext(ctx)
	for servers, url := range map[int]string{1: single.URL(), masters: cluster.URL()} {
		for i := range b.shops[servers] {
			starting.Go(func() (err error) {
				b.shops[servers][i], err = r.Shop(ctx, rig.ShopOptions{Name: fmt.Sprintf("shop-%d-%d", servers, i+1), Env: map[string]string{
					"SHOP_MYSQL": mysql.DSN(), "SHOP_REDIS": url, "SHOP_LAB": "true", "SHOP_LAB_WORK": o.Work.String(),
					"SHOP_LOG_LEVEL": "error", "SHOP_WAIT": "20s",
				}})
				return err
			})
		}
	}
	return b, starting.Wait()
}

func measureAll(ctx context.Context, o Options, plain, logged *bench) ([]Row, error) {
	all := rows()
	ratios, withBinlog := make([][]float64, len(all)), make([][]float64, len(all))
	for round := range o.Rounds {
		var base float64
		for i := range all {
			fmt.Fprintf(o.Log, "round %d of %d: %s\n", round+1, o.Rounds, all[i].Name)
			sold, err := plain.measure(ctx, &all[i])
			if err != nil {
				return nil, err
			}
			if i == 0 {
				base = sold
			}
			ratios[i] = append(ratios[i], sold/base)
			if sold, err = logged.measure(ctx, &all[i]); err != nil {
				return nil, err
			}
			withBinlog[i] = append(withBinlog[i], sold/base)
		}
	}
	for i := range all {
		all[i].Ratio, all[i].Binlog = median(ratios[i]), median(withBinlog[i])
	}
	return all, nil
}

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}

// measure returns how many units a second are sold. It fails when the database does not have
// exactly these orders.
func (b *bench) measure(ctx context.Context, row *Row) (unitsPerSecond float64, err error) {
	const plenty = 1 << 40
	items := make([]audit.Run, row.Items)
	for i := range items {
		b.runs++
		items[i], err = audit.Start(ctx, b.store, audit.Run{ID: fmt.Sprint("scale-", b.runs), Strategy: row.Strategy, Scenario: "scale", InitialStock: plenty})
		if err != nil {
			return 0, err
		}
	}
	shops := b.shops[row.Masters][:row.Shops]
	before, err := b.commands(ctx, row.Masters)
	if err != nil {
		return 0, err
	}
	measuring, cancel := context.WithTimeout(ctx, b.Each)
	defer cancel()
	var turn atomic.Uint64
	next := func() (load.Order, bool) {
		n := int(turn.Add(1) - 1)
		item := items[n/len(shops)%len(items)]
		return load.Order{
			Shop: shops[n%len(shops)].URL, ItemID: item.ItemID, Quantity: row.Units,
			RequestID: item.ID + "-" + strconv.Itoa(n), Strategy: row.Strategy, Run: item.ID,
		}, true
	}
	sold, began := 0, time.Now()
	var wrong error
	err = load.Load{Workers: b.Workers, Timeout: time.Minute}.Run(measuring, next, func(a load.Answer) {
		if a.Outcome != load.Sold {
			wrong = fmt.Errorf("%s: a sale was answered with %d: %s", row.Name, a.Status, a.Body)
			return
		}
		sold += row.Units
	})
	took := time.Since(began)
	if err := errors.Join(err, wrong, context.Cause(ctx)); err != nil {
		return 0, err
	}
	after, err := b.commands(ctx, row.Masters)
	if err != nil {
		return 0, err
	}
	row.Busiest = busiest(before, after)
	return float64(sold) / took.Seconds(), b.check(ctx, items, sold)
}

func (b *bench) check(ctx context.Context, items []audit.Run, sold int) error {
	var counted, lost int64
	for _, item := range items {
		a, err := audit.Count(ctx, b.store, item)
		if err != nil {
			return err
		}
		counted += a.Sold
		lost += a.LostUpdates
	}
	if counted != int64(sold) || lost != 0 {
		return fmt.Errorf("%d units were answered with 201, %d are in orders, %d updates are lost", sold, counted, lost)
	}
	return nil
}

// commands returns how many commands each Redis server has executed.
func (b *bench) commands(ctx context.Context, servers int) ([]float64, error) {
	done := make([]float64, servers)
	for i, server := range b.servers[servers] {
		client := server.Client()
		info, err := client.InfoMap(ctx, "stats").Result()
		client.Close()
		if err != nil {
			return nil, err
		}
		if done[i], err = strconv.ParseFloat(info["Stats"]["total_commands_processed"], 64); err != nil {
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
