package scale

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"

	"stocklock/internal/lab/audit"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/soak"
	"stocklock/internal/lab/tabular"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/testserver"
)

// basketItems is how many items the baskets are taken from.
const basketItems = 64

// basketSizes are the lines of an order, and popularities how its items are drawn.
var (
	basketSizes  = []int{1, 2, 5, 20}
	popularities = []struct {
		name string
		soak.Popularity
	}{{"uniform", soak.Uniform}, {"Zipf", soak.Zipf}}
)

// basketsBase is the way whose orders of one line are the unit.
const basketsBase = "conditional"

// Basket is one way of taking several items, and what it sold.
type Basket struct {
	Way string
	// Ratios are the lines sold a second, divided by those of orders of one line by conditional, with items
	// drawn uniformly: for each popularity, for each size.
	Ratios [][]float64
}

// FitForBaskets are the ways that sell nothing wrong and refuse nobody, but perhaps a basket of very many items.
func FitForBaskets(all []declared.Strategy) (fit []declared.Strategy) {
	var needed declared.Property
	for _, p := range declared.BasketProperties() {
		if p != declared.Unstarved {
			needed |= p
		}
	}
	for _, way := range all {
		outlasted := way.Properties.Meets(declared.PauseProof) || way.Properties.Has.Includes(declared.StorageChecked)
		if way.Baskets.Meets(needed) && outlasted {
			fit = append(fit, way)
		}
	}
	return fit
}

// RunBaskets measures sales of several items from one shop, on private servers, which end with it. The ways
// come in turn, so that all meet the same noise. Work and the binlog are left out.
func RunBaskets(ctx context.Context, o Options, ways []declared.Strategy) (_ []Basket, err error) {
	r, err := rig.New(o.Shop)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	r.RedisProgram = o.Redis
	fmt.Fprintln(o.Log, "starting MySQL, Redis and a shop")
	mysql, err := r.MySQL(ctx)
	if err != nil {
		return nil, err
	}
	redis, err := r.Redis(ctx, testserver.RedisOptions{})
	if err != nil {
		return nil, err
	}
	store, err := audit.Open(ctx, mysql.DSN())
	if err != nil {
		return nil, err
	}
	defer store.Close()
	testbed, err := r.Testbed(ctx, rig.TestbedOptions{
		Name: "shop", Shops: 1, DSN: mysql.DSN(), RedisURL: redis.URL(),
		Env: map[string]string{"SHOP_LAB": "true", "SHOP_LOG_LEVEL": "error", "SHOP_WAIT": "20s"},
	})
	if err != nil {
		return nil, err
	}
	measured, err := o.measureBaskets(ways, func(d soak.Demand) (float64, error) {
		d.Shops = testbed.Shops
		sold, err := soak.Measure(ctx, store, d)
		return sold.Sold, err
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return measured, err
}

// measureBaskets returns the medians over the rounds. A round measures everything once.
func (o Options) measureBaskets(ways []declared.Strategy, linesPerSecond func(soak.Demand) (float64, error)) ([]Basket, error) {
	base := slices.IndexFunc(ways, func(of declared.Strategy) bool { return of.Name == basketsBase })
	if base < 0 {
		return nil, fmt.Errorf("the shop has no %s, which the others are compared with", basketsBase)
	}
	rounds := make([][]Basket, o.Rounds)
	for round := range rounds {
		measured := make([]Basket, len(ways))
		for p, popularity := range popularities {
			for i, way := range ways {
				measured[i].Way = way.Name
				measured[i].Ratios = append(measured[i].Ratios, make([]float64, len(basketSizes)))
			}
			for s, size := range basketSizes {
				fmt.Fprintf(o.Log, "round %d of %d: %s, lines in each order: %d\n", round+1, o.Rounds, popularity.name, size)
				for i, way := range ways {
					sold, err := linesPerSecond(soak.Demand{
						Strategy: way.Name, Items: basketItems, Popularity: popularity.Popularity, Units: 1, Lines: size, AsPosted: true,
						Customers: o.Workers, WarmUp: o.Each / 5, Each: o.Each,
					})
					if err != nil {
						return nil, fmt.Errorf("%s, %s, %d lines: %w", way.Name, popularity.name, size, err)
					}
					measured[i].Ratios[p][s] = sold
				}
			}
		}
		rounds[round] = measured
	}
	return medians(rounds, base), nil
}

// medians divides what was sold in each round by what the base sold there in orders of one line.
func medians(rounds [][]Basket, base int) []Basket {
	all := slices.Clone(rounds[0])
	for i := range all {
		all[i].Ratios = nil
		for p := range popularities {
			var ratios []float64
			for s := range basketSizes {
				var of []float64
				for _, round := range rounds {
					of = append(of, round[i].Ratios[p][s]/round[base].Ratios[0][0])
				}
				ratios = append(ratios, median(of))
			}
			all[i].Ratios = append(all[i].Ratios, ratios)
		}
	}
	return all
}

// PrintBaskets writes a table for people.
func PrintBaskets(out io.Writer, measured []Basket) {
	w := tabular.New()
	header := table.Row{"lines in each order"}
	for _, p := range popularities {
		for i, size := range basketSizes {
			title := fmt.Sprint("\n", size)
			if i == 0 {
				title = p.name + title
			}
			header = append(header, title)
		}
	}
	w.AppendHeader(header)
	for _, m := range measured {
		row := table.Row{m.Way}
		for _, ratios := range m.Ratios {
			for _, ratio := range ratios {
				row = append(row, fmt.Sprintf("× %.1f", ratio))
			}
		}
		w.AppendRow(row)
	}
	w.SetColumnConfigs(tabular.Right(2, len(header)))
	fmt.Fprintln(out, w.Render())
}
