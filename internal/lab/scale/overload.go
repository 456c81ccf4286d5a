package scale

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/tabular"
	"stocklock/internal/stock"
	"stocklock/internal/testserver"
)

// Crowd is so many connections at one shop, each of which orders again as soon as it is answered.
type Crowd struct {
	Connections int
	Items       int // the orders go to so many, in turn

	Sales    float64 // a second
	Rejected float64 // a second: answered with 503, or closed without an answer
	Ratio    float64 // Sales, divided by those of the smallest crowd on as many items
}

// Overload measures one shop with its default settings under crowds. Its ratios are medians.
func Overload(ctx context.Context, o Options, connections []int) (_ []Crowd, err error) {
	r, err := rig.New()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := r.UseShopBinary(o.Shop); err != nil {
		return nil, err
	}
	fmt.Fprintln(o.Log, "starting MySQL, Redis and a shop")
	mysql, err := r.MySQL(ctx)
	if err != nil {
		return nil, err
	}
	redis, err := r.Redis(ctx, testserver.RedisOptions{})
	if err != nil {
		return nil, err
	}
	store, err := stock.Open(mysql.DSN())
	if err != nil {
		return nil, err
	}
	defer store.Close()
	if err := store.Migrate(ctx, slog.New(slog.DiscardHandler)); err != nil {
		return nil, err
	}
	shop, err := r.Shop(ctx, rig.ShopOptions{Name: "shop", Env: map[string]string{"SHOP_MYSQL": mysql.DSN(), "SHOP_REDIS": redis.URL()}})
	if err != nil {
		return nil, err
	}
	var crowds []Crowd
	for _, items := range []int{1, 64} {
		samples := make([][]Crowd, len(connections))
		for round := range o.Rounds {
			for i, n := range connections {
				fmt.Fprintf(o.Log, "round %d of %d: %d connections, items: %d\n", round+1, o.Rounds, n, items)
				c, err := crowd(ctx, o, shop, store, Crowd{Connections: n, Items: items})
				if err != nil {
					return nil, err
				}
				c.Ratio = 1
				if i > 0 {
					c.Ratio = c.Sales / samples[0][round].Sales
				}
				samples[i] = append(samples[i], c)
			}
		}
		for _, of := range samples {
			slices.SortFunc(of, func(a, b Crowd) int { return int(1e6 * (a.Ratio - b.Ratio)) })
			crowds = append(crowds, of[o.Rounds/2])
		}
	}
	return crowds, nil
}

// warmUp is not measured: the crowd connects, and the queues fill.
const warmUp = 3 * time.Second

// crowd fails when the database has other orders than were answered.
func crowd(ctx context.Context, o Options, shop *rig.Shop, store *stock.Store, c Crowd) (Crowd, error) {
	const plenty = 1 << 40
	items := make([]stock.Item, c.Items)
	for i := range items {
		var err error
		if items[i], err = store.CreateItem(ctx, "crowd", plenty); err != nil {
			return c, err
		}
	}
	measuring, cancel := context.WithTimeout(ctx, warmUp+o.Each)
	defer cancel()
	var turn atomic.Uint64
	next := func() (load.Order, bool) {
		n := turn.Add(1)
		return load.Order{Shop: shop.URL, ItemID: items[n%uint64(len(items))].ID, Quantity: 1, RequestID: "crowd-" + strconv.FormatUint(n, 10)}, true
	}
	var sold, unanswered int64
	var wrong error
	from := time.Now().Add(warmUp)
	to := from.Add(o.Each)
	err := load.Load{Workers: c.Connections, Timeout: time.Minute}.Run(measuring, next, func(a load.Answer) {
		answered := a.Sent.Add(a.Latency)
		measured := answered.After(from) && answered.Before(to)
		switch {
		case a.Outcome == load.Sold:
			sold++
			if measured {
				c.Sales++
			}
		case a.Outcome == load.Busy || a.Status == 0:
			if a.Status == 0 {
				unanswered++
			}
			if measured {
				c.Rejected++
			}
		default:
			wrong = fmt.Errorf("an order was answered with %d: %s", a.Status, a.Body)
		}
	})
	if err := errors.Join(err, wrong, context.Cause(ctx)); err != nil {
		return c, err
	}
	var gone int64
	for _, item := range items {
		now, err := store.Read(ctx, item.ID)
		if err != nil {
			return c, err
		}
		gone += plenty - now.Stock
	}
	// A request that the end of the measurement cut off may have sold.
	if gone < sold || gone > sold+unanswered {
		return c, fmt.Errorf("%d units are gone for %d answers with 201 and %d requests without an answer", gone, sold, unanswered)
	}
	c.Sales /= o.Each.Seconds()
	c.Rejected /= o.Each.Seconds()
	return c, nil
}

// PrintCrowds writes a table for people.
func PrintCrowds(out io.Writer, crowds []Crowd) {
	w := tabular.New()
	w.AppendHeader(table.Row{"connections", "items", "sales/s", "rejected/s", "sales"})
	for _, c := range crowds {
		w.AppendRow(table.Row{c.Connections, c.Items, fmt.Sprintf("%.0f", c.Sales), fmt.Sprintf("%.0f", c.Rejected), fmt.Sprintf("× %.2f", c.Ratio)})
	}
	w.SetColumnConfigs(tabular.Right(1, 5))
	fmt.Fprintln(out, w.Render())
}
