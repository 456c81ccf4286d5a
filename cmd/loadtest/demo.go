package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/topology"
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
	for _, plan := range []matrix.Plan{c.baskets(shop), c.topologies(shop)} {
		if faults.Interrupted || r.Interrupted || len(plan.Baskets)+len(plan.Cases) == 0 {
			continue
		}
		more, err := measure(ctx, plan, shop, s)
		if err != nil {
			return err
		}
		faults.Cells, faults.Interrupted = append(faults.Cells, more.Cells...), more.Interrupted
		if len(plan.Baskets) > 0 { // the other strategies are among those of before
			faults.Strategies = append(faults.Strategies, more.Strategies...)
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

// tellingBaskets are the cells of several items in a demo.
var tellingBaskets = []string{"locks-unsorted:crossed", "saga:death-between-lines"}

// baskets are two cells of several items: none where a shop of one's own has no such ways.
func (c *demoCommand) baskets(shop *catalog.Catalog) matrix.Plan {
	plan := usualPlan(c.Seed, c.redisSettings)
	plan.Baskets, _ = selection{Cells: tellingBaskets}.basketPairs(shop)
	return plan
}

// In a demo, these strategies sell in these cases: by a failover both lie, and by an old read one oversells.
var (
	tellingCases    = []string{"async-failover", "replica-reads-late"}
	tellingOnServer = []string{"fenced", "conditional"}
)

// topologies are a few cells on databases of two servers, likewise.
func (c *demoCommand) topologies(shop *catalog.Catalog) matrix.Plan {
	plan, err := usualPlan(c.Seed, c.redisSettings), error(nil)
	if plan.Strategies, err = named(tellingOnServer, shop.Strategies, shop.ByName); err == nil {
		plan.Cases, _ = named(tellingCases, topology.Cases, topology.CaseByName)
	}
	return plan
}

// demoPlans are the cells that are compared, and the telling ones.
func demoPlans(seed uint64, on redisSettings, shop *catalog.Catalog) (comparison, telling matrix.Plan, err error) {
	comparison = usualPlan(seed, on)
	comparison.Stock = matrix.FaultStock // each unit takes ten milliseconds of its lock
	comparison, err = choose(comparison, selection{Runs: 1, Strategies: compared, Scenarios: []string{"contention"}}, shop)
	if err != nil {
		return comparison, telling, err
	}
	telling, err = choose(usualPlan(seed, on), selection{Runs: 1, Cells: []string{tellingCells}}, shop)
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
	if err := errors.Join(both.WriteFile(o.page, report.Report.HTML), both.WriteFile(o.saved, report.Report.JSON)); err != nil {
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
