package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"stocklock/internal/lab/scale"
)

type scaleCommand struct {
	Each    time.Duration `default:"5s" min:"100ms" max:"1h" help:"How long each row is measured in a round."`
	Rounds  int           `default:"3" min:"1" max:"1000" help:"How often each row is measured. The ratios are medians."`
	Work    time.Duration `default:"5ms" min:"0s" max:"1s" help:"Work inside the section, between reading the stock and writing it."`
	Workers int           `default:"48" min:"1" max:"1000" help:"Customers who buy at the same time."`

	shopSettings `embed:""`
}

func (c *scaleCommand) Run(ctx context.Context, s streams) error {
	rows, err := scale.Run(ctx, scale.Options{Shop: c.ShopBinary, Each: c.Each, Rounds: c.Rounds, Work: c.Work, Workers: c.Workers, Log: s.err})
	if err != nil {
		return err
	}
	scale.Print(s.out, rows)
	fmt.Fprintf(s.out, "units sold against the first row, medians of %d rounds of %s · %d customers, %s of work in the section, %d cores for everything\n",
		c.Rounds, c.Each, c.Workers, c.Work, runtime.NumCPU())
	return nil
}
