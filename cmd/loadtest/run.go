package main

import (
	"context"
	"errors"
	"slices"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/wholefile"
	"stocklock/internal/strategy"
)

type runCommand struct {
	selection `embed:""`
	settings  `embed:""`
	outputs   `embed:""`

	Results    string   `placeholder:"FILE" help:"Also write every request here, for vegeta report and vegeta plot."`
	Baskets    bool     `help:"Sell several items at once: ways of taking baskets, under scenarios of their own. Without --strategies, --scenarios or --cells all of them: see loadtest list baskets."`
	Topology   []string `placeholder:"NAMES" help:"Run on databases of more than one server, under scenarios of their own: all, or those of loadtest list topologies. Without --strategies all of them."`
	ExpectOnly bool     `help:"Only print what is expected of each cell."`
	Draw       bool     `help:"Also explain and draw the cells that broke: the first of each cause."`
}

func (c *runCommand) Run(ctx context.Context, s streams) error {
	plan, err := c.plan()
	if err != nil {
		return err
	}
	if err := c.outputs.check(output{flag: "--results", path: c.Results}); err != nil {
		return err
	}
	shop, err := c.catalog(ctx, s)
	if err != nil {
		return err
	}
	defer shop.Close()
	if c.Baskets {
		return c.baskets(ctx, plan, shop, s)
	}
	if len(c.Topology) > 0 {
		return c.topologies(ctx, plan, shop, s)
	}
	if plan, err = choose(plan, c.selection, shop); err != nil {
		return err
	}
	if c.ExpectOnly && len(c.MySQLSet) > 0 {
		return usage("--expect-only starts no MySQL, and what --mysql-set changes is asked of it")
	}
	if c.ExpectOnly {
		wanted := func(st strategy.Description, sc scenario.Scenario) bool {
			return slices.ContainsFunc(plan.Pairs, func(c matrix.Pair) bool { return c.Strategy.Name == st.Name && c.Scenario.Name == sc.Name })
		}
		s.terminal().Expected(plan.Strategies, wanted, plan.LockOptions())
		return nil
	}
	var results *wholefile.File
	if c.Results != "" {
		if results, err = wholefile.Create(c.Results); err != nil {
			return usage("%w", err)
		}
		defer results.Discard()
		plan.Records = load.NewRecords(results)
	}
	r, failed := measure(ctx, plan, shop, s)
	if failed != nil && len(r.Cells) == 0 {
		return failed
	}
	if results != nil {
		if err := errors.Join(plan.Records.Flush(), results.Commit()); err != nil {
			return err
		}
	}
	terminal := c.outputs.beside(s).terminal()
	if c.Draw {
		terminal.Drawings(r)
	}
	terminal.Report(r)
	err = c.outputs.finish(r, s)
	if failed != nil { // the cells that were run before are shown and written all the same
		return failed
	}
	terminal.Next(r, program(), c.JSON)
	return err
}

// measure runs a plan on shops of the catalog's program. When ctx ends it, the report has what there is.
func measure(ctx context.Context, plan matrix.Plan, shop *catalog.Catalog, s streams) (report.Report, error) {
	status := matrix.NewStatus(s.err, isTerminal(s.err))
	defer status.Close()
	plan.Shop = shop.Program
	r, err := matrix.Run(ctx, plan, status)
	if address, ok := errors.AsType[*matrix.AddressError](err); ok {
		return r, usage("--%w", address)
	}
	r.Environment.Command = commandLine(s.args)
	for i, c := range r.Cells {
		r.Cells[i].Replay = replay(c, plan, shop.Given)
	}
	return r, err
}
