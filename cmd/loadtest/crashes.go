package main

import (
	"context"
	"time"

	"stocklock/internal/lab/crashes"
)

type crashesCommand struct {
	Strategy string        `default:"batched" help:"How to sell: see loadtest list strategies. redlock cannot: it needs several Redis servers."`
	Sales    int64         `default:"1000000" min:"1" max:"100000000" help:"The units of the item. All are sold."`
	Every    time.Duration `default:"2s" min:"100ms" max:"10m" help:"The time between two kills. The shops are killed in turn."`
	Shops    int           `default:"3" min:"2" max:"16" help:"How many shop processes sell."`
	Workers  int           `default:"200" min:"1" max:"1000" help:"Customers who buy at the same time."`
	Binlog   bool          `help:"Have MySQL write a binlog and sync it with each commit, as MySQL does by default."`

	shopSettings `embed:""`
}

func (c *crashesCommand) Run(ctx context.Context, s streams) error {
	shop, err := c.catalog(ctx, s)
	if err != nil {
		return err
	}
	defer shop.Close()
	by, err := shop.ByName(c.Strategy)
	if err != nil {
		return usage("--strategy: %w", err)
	}
	if needsQuorum(by) {
		return usage("--strategy: there is one Redis, and %s needs several", by.Name)
	}
	report, err := crashes.Run(ctx, crashes.Options{
		Shop: shop.Program, Strategy: by, Sales: c.Sales, Shops: c.Shops, Workers: c.Workers, Every: c.Every, Binlog: c.Binlog, Log: s.err,
	})
	if err != nil {
		return err
	}
	report.Print(s.out)
	if !report.Held() {
		return errSurprised
	}
	return nil
}
