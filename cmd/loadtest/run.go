package main

import (
	"context"
	"errors"
	"slices"

	"github.com/alecthomas/kong"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/topology"
	"stocklock/internal/lab/wholefile"
	"stocklock/internal/strategy/declared"
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

func (c *runCommand) Run(ctx context.Context, s streams, parsed *kong.Context) error {
	plan, err := c.plan()
	if err != nil {
		return err
	}
	if c.Baskets || c.Topology != nil {
		if err := refuseSet(parsed, c.Baskets); err != nil {
			return err
		}
	}
	if err := c.outputs.check(output{flag: "--results", path: c.Results}); err != nil {
		return err
	}
	if c.ExpectOnly {
		return c.expect(ctx, plan, s)
	}
	var chosen matrix.Plan
	shop, err := c.catalog(ctx, s, func(shop *catalog.Catalog) (err error) {
		chosen, err = c.choose(plan, shop)
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
	if failed != nil { // the cells that were run before are shown and written all the same
		return failed
	}
	if len(plan.Pairs) > 0 {
		terminal.Next(r, program(), c.JSON)
	}
	return err
}

// expect prints what is expected of each cell.
func (c *runCommand) expect(ctx context.Context, plan matrix.Plan, s streams) error {
	if len(c.MySQLSet) > 0 {
		return usage("--expect-only starts no MySQL, and what --mysql-set changes is asked of it")
	}
	shop, err := c.known(ctx, s)
	if err != nil {
		return err
	}
	defer shop.Close()
	if plan, err = c.choose(plan, shop); err != nil {
		return err
	}
	s.terminal().Expected(plan.Expected())
	return nil
}

// choose completes a plan with the cells that are asked for.
func (c *runCommand) choose(plan matrix.Plan, shop *catalog.Catalog) (_ matrix.Plan, err error) {
	switch {
	case !c.Baskets && c.Topology == nil:
		return choose(plan, c.selection, shop)
	case c.Baskets && c.Topology != nil:
		return plan, usage("--baskets and --topology have scenarios of their own: want one of the two")
	case c.Results != "":
		return plan, usage("--baskets and --topology measure no requests: want --json, --html, --csv or --markdown in place of --results")
	case c.Baskets:
		plan.Baskets, err = c.basketPairs(shop)
	default:
		plan.Cases, plan.Strategies, err = c.topologyCells(shop)
	}
	if err != nil {
		return plan, err
	}
	plan.Runs, plan.Parallel = c.Runs, given(c.Parallel)
	return plan, startsAll(plan)
}

// refuseSet refuses flags on the command line for what the scenarios of baskets, or of topologies, set themselves.
func refuseSet(parsed *kong.Context, baskets bool) error {
	set := []string{"shops", "stock", "requests", "workers", "rate", "lease", "wait", "retry", "work", "trace"}
	if baskets {
		set = append(set, "parallel")
	} else {
		set = append(set, "binlog", "mysql-set")
	}
	for _, at := range parsed.Path {
		if at.Flag != nil && slices.Contains(set, at.Flag.Name) {
			no := ""
			if at.Flag.Negated {
				no = "no-"
			}
			return usage("--%s%s is set by the scenarios of baskets and topologies: leave it out", no, at.Flag.Name)
		}
	}
	return nil
}

// startsAll refuses servers and shops that are given.
func startsAll(plan matrix.Plan) error {
	if len(plan.Given) > 0 || plan.MySQL != "" || plan.Redis != "" {
		return usage("the scenarios of baskets and topologies stop and kill shops and servers: the lab starts all of them itself, without --shop, --mysql and --redis")
	}
	return nil
}

// topologyCells are the cases of the topologies that are asked for, and the strategies.
func (c *runCommand) topologyCells(shop *catalog.Catalog) ([]topology.Case, []declared.Strategy, error) {
	if len(c.Cells) > 0 || !slices.Equal(c.Scenarios, []string{usualScenario}) {
		return nil, nil, usage("--topology has scenarios of its own, and shares servers between strategies: choose with --strategies, without --cells and --scenarios")
	}
	strategies, err := named(c.selection.orAll().Strategies, shop.Strategies, shop.ByName)
	if err != nil {
		return nil, nil, usage("--strategies: %w, or all", err)
	}
	topologies, err := named(c.Topology, topology.All, topology.ByName)
	if err != nil {
		return nil, nil, usage("--topology: %w, or all", err)
	}
	var cases []topology.Case
	for _, of := range topology.Cases {
		if slices.ContainsFunc(topologies, func(t topology.Topology) bool { return t.Name == of.Topology.Name }) {
			cases = append(cases, of)
		}
	}
	return cases, strategies, nil
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
