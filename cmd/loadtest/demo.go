package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/live"
	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/wholefile"
)

type demoCommand struct {
	Out  string `default:"out" placeholder:"DIR" help:"The folder for report.html and result.json. It is made where it is missing."`
	Seed uint64 `default:"1" help:"The seed of the fault schedules."`

	shopSettings  `embed:""`
	redisSettings `embed:""`
}

// compared are the strategies whose numbers the demo compares.
var compared = []string{"none", "setnx", "set-ex-nx", "owner-checked", "reentrant"}

// Run compares five strategies while nothing goes wrong, and then runs the telling cell of each
// strategy. It keeps both in one report.
func (c *demoCommand) Run(ctx context.Context, s streams) error {
	kept, err := demoFiles(c.Out)
	if err != nil {
		return err
	}
	var comparison, telling matrix.Plan
	shop, err := c.catalog(ctx, s, func(shop *catalog.Catalog) (err error) {
		comparison, telling, err = demoPlans(c.Seed, c.redisSettings, shop)
		return err
	})
	if err != nil {
		return err
	}
	defer shop.Close()
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
	if err := kept.write(r, faults, s); err != nil {
		return err
	}
	if len(r.Surprises())+len(faults.Surprises()) > 0 {
		return errSurprised
	}
	return nil
}

// tellingOfAFew are cells of several items, and on databases of two servers: by a failover both strategies lie, and by an
// old read one oversells.
var tellingOfAFew = []string{
	"locks-unsorted:crossed", "saga:death-between-lines",
	"fenced:async-failover", "conditional:async-failover", "fenced:replica-reads-late", "conditional:replica-reads-late",
}

// demoPlans are the cells that are compared, and the telling ones.
func demoPlans(seed uint64, on redisSettings, shop *catalog.Catalog) (comparison, telling matrix.Plan, err error) {
	comparison = usualPlan(seed, on)
	comparison.Stock = matrix.FaultStock // each unit takes ten milliseconds of its lock
	comparison, err = choose(comparison, selection{Runs: 1, Strategies: compared, Scenarios: []string{"contention"}}, shop)
	if err != nil {
		return comparison, telling, err
	}
	cells := []string{tellingCells}
	for _, cell := range tellingOfAFew {
		name, _, _ := strings.Cut(cell, ":")
		if _, err := shop.Any(name); err == nil { // a shop of one's own may not
			cells = append(cells, cell)
		}
	}
	telling, err = choose(usualPlan(seed, on), selection{Runs: 1, Cells: cells}, shop)
	telling.Pairs = slices.DeleteFunc(telling.Pairs, func(p matrix.Pair) bool {
		return p.Scenario.Comparable && slices.Contains(compared, p.Strategy.Name)
	})
	return comparison, telling, err
}

// demoOutput are the files that a demo leaves.
type demoOutput struct{ page, saved string }

// demoFiles sees that the files can be written.
func demoFiles(folder string) (demoOutput, error) {
	o := demoOutput{filepath.Join(folder, "report.html"), filepath.Join(folder, "result.json")}
	for _, path := range []string{o.page, o.saved} {
		if err := wholefile.Check(path); err != nil {
			return o, usage("--out: %w", err)
		}
	}
	return o, nil
}

// write writes the files and prints the screen with which a demo ends.
func (o demoOutput) write(compared, telling report.Report, s streams) error {
	both := report.Joined(compared, telling)
	if err := errors.Join(both.WriteFile(o.page, live.Save), both.WriteFile(o.saved, report.Report.JSON)); err != nil {
		return err
	}
	s.terminal().Demo(compared, telling)
	fmt.Fprintf(s.out, "What happened in each of these %d cells: %s\n", len(both.Cells), o.page)
	s.terminal().Next(both, program(), o.saved)
	return nil
}

// usualPlan is a plan with the defaults of loadtest run.
func usualPlan(seed uint64, on redisSettings) matrix.Plan {
	return matrix.Plan{RedisServer: string(on.RedisServer), Seed: seed, Shops: matrix.DefaultShops, Workers: matrix.DefaultWorkers, Retry: matrix.DefaultRetry, Trace: true}
}
