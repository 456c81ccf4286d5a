package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"time"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/scale"
	"stocklock/internal/lab/soak"
)

type scaleCommand struct {
	Each       time.Duration `default:"5s" min:"100ms" max:"1h" help:"How long each row is measured in a round."`
	Rounds     int           `default:"3" min:"1" max:"1000" help:"How often each row is measured. The ratios are medians."`
	Work       time.Duration `default:"5ms" min:"0s" max:"1s" help:"Work inside the section, between reading the stock and writing it. None with --baskets and --crowds."`
	Baskets    bool          `xor:"what" help:"Measure orders of 1, 2, 5 and 20 lines from 64 items instead, by each way that sells them right."`
	Crowds     []int         `xor:"what" placeholder:"CONNECTIONS" help:"Measure one shop with its default settings under crowds of so many connections instead, such as 100,1500. Each connection orders again as soon as it is answered."`
	Topologies bool          `xor:"what" help:"Measure some strategies on each of loadtest list topologies instead, without any fault, from three shops: units sold against the same strategy on one server."`
	JSON       bool          `name:"json" help:"With --topologies: print JSON in place of the table."`
	Workers    int           `default:"48" min:"1" max:"1000" help:"Customers who buy at the same time."`

	shopSettings  `embed:""`
	redisSettings `embed:""`
}

// Help is shown under the flags.
func (*scaleCommand) Help() string {
	return `Examples:

    loadtest scale --rounds 3
    loadtest scale --baskets --each 1s
    loadtest scale --topologies --each 2s
    loadtest scale --crowds 100,1500`
}

func (c *scaleCommand) Run(ctx context.Context, s streams) error {
	if c.JSON && !c.Topologies {
		return usage("--json is of --topologies alone")
	}
	for _, n := range c.Crowds {
		if n < 1 || n > 10_000 {
			return usage("--crowds has %d: want 1 to 10000 connections", n)
		}
	}
	shop, err := c.catalog(ctx, s, func(*catalog.Catalog) error { return nil })
	if err != nil {
		return err
	}
	defer shop.Close()
	o := scale.Options{Shop: shop.Program, Redis: string(c.RedisServer), Each: c.Each, Rounds: c.Rounds, Work: c.Work, Workers: c.Workers, Log: s.err}
	switch {
	case len(c.Crowds) > 0:
		return c.crowds(ctx, s, shop)
	case c.Baskets:
		return c.baskets(ctx, s, o, shop)
	case c.Topologies:
		return c.topologies(ctx, s, o, shop)
	}
	rows, err := scale.Run(ctx, o)
	if err != nil {
		return err
	}
	scale.Print(s.out, rows)
	fmt.Fprintf(s.out, "units sold against the first row without a binlog, medians of %d rounds of %s · %d customers, %s of work in the section, %d cores for everything\n",
		c.Rounds, c.Each, c.Workers, c.Work, runtime.NumCPU())
	return nil
}

func (c *scaleCommand) baskets(ctx context.Context, s streams, o scale.Options, shop *catalog.Catalog) error {
	measured, err := scale.RunBaskets(ctx, o, scale.FitForBaskets(shop.Baskets))
	if err != nil {
		return err
	}
	scale.PrintBaskets(s.out, measured)
	fmt.Fprintf(s.out, "lines sold against orders of one line by conditional, uniform; medians of %d rounds of %s · %d customers, one shop, no work in the section, %d cores for everything\n",
		c.Rounds, c.Each, c.Workers, runtime.NumCPU())
	return nil
}

func (c *scaleCommand) topologies(ctx context.Context, s streams, o scale.Options, shop *catalog.Catalog) error {
	measured, err := scale.RunTopologies(ctx, o, shop.Strategies)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(s.out).Encode(measured)
	}
	scale.PrintTopologies(s.out, measured)
	fmt.Fprintf(s.out, "units sold of 1 and of 64 items, against the same strategy on one server; medians of %d rounds of %s · %d customers, three shops, no fault, no work in the section, no network, %d cores for everything\n",
		c.Rounds, c.Each, c.Workers, runtime.NumCPU())
	return nil
}

func (c *scaleCommand) crowds(ctx context.Context, s streams, shop *catalog.Catalog) error {
	crowds, err := soak.MeasureCrowds(ctx, soak.CrowdOptions{Shop: shop.Program, Redis: string(c.RedisServer), Connections: c.Crowds, Each: c.Each, Rounds: c.Rounds, Log: s.err})
	if err != nil {
		return err
	}
	soak.PrintCrowds(s.out, crowds)
	fmt.Fprintf(s.out, "sales against the first crowd on as many items, medians of %d rounds of %s · one shop with its default settings, %d cores for everything\n",
		c.Rounds, c.Each, runtime.NumCPU())
	return nil
}
