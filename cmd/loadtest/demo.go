package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/wholefile"
)

type demoCommand struct {
	Out  string `default:"out" placeholder:"DIR" help:"The folder for report.html and result.json. It is made where it is missing."`
	Seed uint64 `default:"1" help:"The seed of the fault schedules."`

	shopSettings `embed:""`
}

// compared are the strategies whose numbers the demo compares.
var compared = []string{"none", "setnx", "set-ex-nx", "owner-checked", "reentrant"}

// Run compares five strategies while nothing goes wrong, and then runs the telling cell of each
// strategy. It keeps both in one report.
func (c *demoCommand) Run(ctx context.Context, s streams) error {
	if err := os.MkdirAll(c.Out, 0o755); err != nil {
		return usage("--out: %w", err)
	}
	page, saved := filepath.Join(c.Out, "report.html"), filepath.Join(c.Out, "result.json")
	for _, path := range []string{page, saved} {
		if err := wholefile.Check(path); err != nil {
			return usage("--out: %w", err)
		}
	}
	shop, err := c.catalog(ctx, s)
	if err != nil {
		return err
	}
	defer shop.Close()
	comparison, err := choose(usualPlan(c.Seed), selection{Runs: 1, Strategies: compared, Scenarios: []string{"contention"}}, shop)
	if err != nil {
		return err
	}
	telling, err := choose(usualPlan(c.Seed), selection{Runs: 1, Cells: []string{tellingCells}}, shop)
	if err != nil {
		return err
	}
	telling.Pairs = slices.DeleteFunc(telling.Pairs, func(p matrix.Pair) bool {
		return p.Scenario.Comparable && slices.Contains(compared, p.Strategy.Name)
	})

	r, err := measure(ctx, comparison, shop, s)
	if err != nil {
		return err
	}
	var faults report.Report
	if !r.Interrupted {
		if faults, err = measure(ctx, telling, shop, s); err != nil {
			return err
		}
	}
	both := report.Joined(r, faults)
	if err := errors.Join(both.WriteFile(page, report.Report.HTML), both.WriteFile(saved, report.Report.JSON)); err != nil {
		return err
	}
	s.terminal().Demo(r, faults)
	fmt.Fprintf(s.out, "Every cell, with the interleaving that broke it: %s\n", page)
	s.terminal().Next(both, program(), saved)
	if len(both.Surprises()) > 0 {
		return errSurprised
	}
	return nil
}

// usualPlan is a plan with the defaults of loadtest run.
func usualPlan(seed uint64) matrix.Plan {
	return matrix.Plan{Seed: seed, Shops: matrix.DefaultShops, Workers: matrix.DefaultWorkers, Retry: matrix.DefaultRetry, Work: matrix.DefaultWork, Trace: true}
}
