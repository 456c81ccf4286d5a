package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"stocklock/internal/lab/scale"
	"stocklock/internal/lab/soak"
)

type scaleCommand struct {
	Each    time.Duration `default:"5s" min:"100ms" max:"1h" help:"How long each row is measured in a round."`
	Rounds  int           `default:"3" min:"1" max:"1000" help:"How often each row is measured. The ratios are medians."`
	Work    time.Duration `default:"5ms" min:"0s" max:"1s" help:"Work inside the section, between reading the stock and writing it."`
	Crowds  []int         `placeholder:"CONNECTIONS" help:"Measure one shop with its default settings under crowds of so many connections instead, such as 100,1500. Each connection orders again as soon as it is answered."`
	Workers int           `default:"48" min:"1" max:"1000" help:"Customers who buy at the same time."`

	shopSettings  `embed:""`
	redisSettings `embed:""`
}

func (c *scaleCommand) Run(ctx context.Context, s streams) error {
	if len(c.Crowds) > 0 {
		return c.crowds(ctx, s)
	}
	rows, err := scale.Run(ctx, scale.Options{Shop: c.ShopBinary, Redis: string(c.RedisServer), Each: c.Each, Rounds: c.Rounds, Work: c.Work, Workers: c.Workers, Log: s.err})
	if err != nil {
		return err
	}
	scale.Print(s.out, rows)
	fmt.Fprintf(s.out, "units sold against the first row without a binlog, medians of %d rounds of %s · %d customers, %s of work in the section, %d cores for everything\n",
		c.Rounds, c.Each, c.Workers, c.Work, runtime.NumCPU())
	return nil
}

func (c *scaleCommand) crowds(ctx context.Context, s streams) error {
	for _, n := range c.Crowds {
		if n < 1 || n > 10_000 {
			return usage("--crowds has %d: want 1 to 10000 connections", n)
		}
	}
	crowds, err := soak.MeasureCrowds(ctx, soak.CrowdOptions{Shop: c.ShopBinary, Redis: string(c.RedisServer), Connections: c.Crowds, Each: c.Each, Rounds: c.Rounds, Log: s.err})
	if err != nil {
		return err
	}
	soak.PrintCrowds(s.out, crowds)
	fmt.Fprintf(s.out, "sales against the first crowd on as many items, medians of %d rounds of %s · one shop with its default settings, %d cores for everything\n",
		c.Rounds, c.Each, runtime.NumCPU())
	return nil
}
