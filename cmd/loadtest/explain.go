package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/trial"
)

type explainCommand struct {
	Cell     string `arg:"" placeholder:"STRATEGY:SCENARIO" help:"The cell, such as owner-checked:pause. See loadtest list strategies."`
	Scenario string `arg:"" optional:"" help:"The scenario, where the first argument is a strategy alone: ${scenarios}. Or one of loadtest list baskets, or of list topologies."`
	settings `embed:""`

	From string `placeholder:"FILE" help:"Explain the cell of this saved result, which --json wrote. Without it the cell is run."`
}

func (c *explainCommand) Run(ctx context.Context, s streams, parsed *kong.Context) error {
	name, scenarioName, joined := strings.Cut(c.Cell, ":")
	switch {
	case joined && c.Scenario != "":
		return usage("explain explains one cell: want STRATEGY:SCENARIO, not %s and %s", c.Cell, c.Scenario)
	case !joined && c.Scenario == "":
		return usage("explain %s: under which scenario? want %s:SCENARIO", c.Cell, c.Cell)
	case !joined:
		scenarioName = c.Scenario
	}
	if c.From != "" {
		return c.saved(name+":"+scenarioName, s)
	}
	plan, err := c.plan()
	if err != nil {
		return err
	}
	chosen := plan
	shop, err := c.catalog(ctx, s, func(shop *catalog.Catalog) (err error) {
		if chosen, err = choose(plan, selection{Cells: []string{name + ":" + scenarioName}, Runs: 1}, shop); err != nil {
			return fmt.Errorf("explain explains one cell: %w", err)
		}
		if len(chosen.Pairs) != 1 { // all, or a group
			if _, err := scenario.ByName(scenarioName); err != nil {
				return usage("explain explains one cell: no scenario %q", scenarioName)
			}
			return usage("explain explains one cell: no strategy %q", name)
		}
		return refuseSet(parsed, chosen)
	})
	if err != nil {
		return err
	}
	defer shop.Close()
	fmt.Fprintf(s.err, "running %s:%s; --from FILE explains a saved result\n", name, scenarioName)
	r, err := measure(ctx, chosen, shop, s)
	if err != nil || len(r.Cells) == 0 {
		return err
	}
	return errors.Join(c.show(r.Cells[0], s), c.search(ctx, chosen.Pairs[0], shop, s))
}

// saved explains a cell of a saved result.
func (c *explainCommand) saved(name string, s streams) error {
	r, err := report.Read(c.From)
	if err != nil {
		return usage("%w", err)
	}
	i := slices.IndexFunc(r.Cells, func(cell trial.Result) bool { return cell.Name() == name })
	if i < 0 {
		return usage("%s has no cell %s: %s report %s lists those that it has", c.From, name, program(), c.From)
	}
	return c.show(r.Cells[i], s)
}

func (c *explainCommand) show(cell trial.Result, s streams) error {
	s.terminal().Explain(cell)
	if cell.Surprise() {
		return errSurprised
	}
	return nil
}
