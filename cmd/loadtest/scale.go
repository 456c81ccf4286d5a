package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"stocklock/internal/lab/scale"
)

type scaleCommand struct {
	Each    time.Duration `default:"5s" help:"How long each row is measured in a round."`
	Rounds  int           `default:"3" help:"How often each row is measured. The ratios are medians."`
	Work    time.Duration `default:"5ms" help:"Work inside the section, between reading the stock and writing it."`
	Workers int           `default:"48" help:"Customers who buy at the same time."`
}

func (c *scaleCommand) Run(ctx context.Context, s streams) error {
	switch {
	case c.Each < 100*time.Millisecond || c.Each > time.Hour:
		return usage("--each is %s, want 100ms to 1h", c.Each)
	case c.Rounds < 1 || c.Rounds > 1000:
		return usage("--rounds is %d, want 1 to 1000", c.Rounds)
	case c.Work < 0 || c.Work > time.Second:
		return usage("--work is %s, want 0 to 1s", c.Work)
	case c.Workers < 1 || c.Workers > 1000:
		return usage("--workers is %d, want 1 to 1000", c.Workers)
	}
	rows, err := scale.Run(ctx, scale.Options{Each: c.Each, Rounds: c.Rounds, Work: c.Work, Workers: c.Workers, Log: s.err})
	if err != nil {
		return err
	}
	scale.Print(s.out, rows)
	fmt.Fprintf(s.out, "units sold against the first row, medians of %d rounds of %s · %d customers, %s of work in the section, %d cores for everything\n",
		c.Rounds, c.Each, c.Workers, c.Work, runtime.NumCPU())
	return nil
}
