package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/wholefile"
)

type runCommand struct {
	selection `embed:""`
	settings  `embed:""`
	outputs   `embed:""`

	Results    string   `placeholder:"FILE" help:"Also write every request here, for vegeta report and vegeta plot."`
	Baskets    bool     `hidden:""`
	Topology   []string `hidden:""`
	ExpectOnly bool     `help:"Only print what is expected of each cell."`
	Draw       bool     `help:"Also explain and draw the cells that broke: the first of each cause."`
}

func (c *runCommand) Run(ctx context.Context, s streams, parsed *kong.Context) error {
	if err := c.replaced(); err != nil {
		return err
	}
	plan, err := c.plan()
	if err != nil {
		return err
	}
	if err := c.outputs.check(output{flag: "--results", path: c.Results}); err != nil {
		return err
	}
	if c.ExpectOnly {
		return c.expect(ctx, plan, s, parsed)
	}
	var chosen matrix.Plan
	shop, err := c.catalog(ctx, s, func(shop *catalog.Catalog) (err error) {
		chosen, err = c.choose(plan, shop, parsed)
		return err
	})
	if err != nil {
		return err
	}
	defer shop.Close()
	plan = chosen
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
	if failed != nil { // the cells that were run before are still shown and written
		return failed
	}
	terminal.Next(r, program(), c.JSON)
	return err
}

// expect prints what is expected of each cell.
func (c *runCommand) expect(ctx context.Context, plan matrix.Plan, s streams, parsed *kong.Context) error {
	if len(c.MySQLSet) > 0 {
		return usage("--expect-only starts no MySQL, and what --mysql-set changes is asked of it")
	}
	shop, err := c.known(ctx, s)
	if err != nil {
		return err
	}
	defer shop.Close()
	if plan, err = c.choose(plan, shop, parsed); err != nil {
		return err
	}
	s.terminal().Expected(plan.Expected())
	return nil
}

// replaced answers flags of before with the line that replaces them.
func (c *runCommand) replaced() error {
	switch {
	case c.Baskets && len(c.Cells) > 0:
		return usage("--baskets is gone, and --cells says enough: %s run --cells %s", program(), strings.Join(c.Cells, ","))
	case c.Baskets:
		return usage("--baskets is gone: %s run --scenarios %s", program(), trial.Baskets)
	case c.Topology != nil:
		return usage("--topology is gone: %s run --scenarios %s", program(), strings.ReplaceAll(strings.Join(c.Topology, ","), "all", scenario.Topologies))
	}
	return nil
}

// choose completes a plan with the cells that are asked for. The flags on the command line must be theirs.
func (c *runCommand) choose(plan matrix.Plan, shop *catalog.Catalog, parsed *kong.Context) (_ matrix.Plan, err error) {
	if plan, err = choose(plan, c.selection, shop); err != nil {
		return plan, err
	}
	if ofAFew(plan) && c.Results != "" {
		return plan, usage("the scenarios of baskets, reservations and topologies measure no requests: want --json, --html, --csv or --markdown in place of --results")
	}
	return plan, refuseSet(parsed, plan)
}

// refuseSet refuses flags on the command line for what the scenarios of a few customers set themselves, where
// there are no others.
func refuseSet(parsed *kong.Context, plan matrix.Plan) error {
	set := []string{"shops", "stock", "requests", "workers", "rate", "lease", "wait", "retry", "work", "trace", "binlog", "mysql-set"}
	for _, p := range plan.Pairs {
		switch {
		case p.Scenario.Few == nil:
			return nil
		case p.Scenario.Topology == nil:
			set = append(slices.DeleteFunc(set, func(flag string) bool { return flag == "binlog" || flag == "mysql-set" }), "parallel")
		}
	}
	for _, at := range parsed.Path {
		if at.Flag != nil && slices.Contains(set, at.Flag.Name) {
			no := ""
			if at.Flag.Negated {
				no = "no-"
			}
			return usage("--%s%s is set by the scenarios of baskets, reservations and topologies: leave it out", no, at.Flag.Name)
		}
	}
	return nil
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
	one := plan.OneServer()
	for i, c := range r.Cells {
		r.Cells[i].Replay = replay(c, one, shop.Given)
	}
	return r, err
}
