package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"stocklock/internal/lab/basket"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/trial"
)

type explainCommand struct {
	Cell     string `arg:"" placeholder:"STRATEGY:SCENARIO" help:"The cell, such as owner-checked:pause. See loadtest list strategies."`
	Scenario string `arg:"" optional:"" help:"The scenario, where the first argument is a strategy alone: ${scenarios}. Or one of loadtest list baskets."`
	settings `embed:""`

	From    string `placeholder:"FILE" help:"Explain the cell of this saved result, which --json wrote. Without it the cell is run."`
	Mermaid bool   `help:"Print a Mermaid sequence diagram instead, which GitHub draws in Markdown."`
}

func (c *explainCommand) Run(ctx context.Context, s streams) error {
	strategy, scenarioName, joined := strings.Cut(c.Cell, ":")
	switch {
	case joined && c.Scenario != "":
		return usage("explain explains one cell: want STRATEGY:SCENARIO, not %s and %s", c.Cell, c.Scenario)
	case !joined && c.Scenario == "":
		return usage("explain %s: under which scenario? want %s:SCENARIO", c.Cell, c.Cell)
	case !joined:
		scenarioName = c.Scenario
	}
	if c.From != "" {
		return c.saved(strategy+":"+scenarioName, s)
	}
	plan, err := c.plan()
	if err != nil {
		return err
	}
	if _, err := basket.ByName(scenarioName); err == nil {
		return c.basket(ctx, plan, strategy+":"+scenarioName, s)
	}
	if _, err := scenario.ByName(scenarioName); err != nil {
		return usage("explain explains one cell: %w", err)
	}
	shop, err := c.catalog(ctx, s)
	if err != nil {
		return err
	}
	defer shop.Close()
	if _, err := shop.ByName(strategy); err != nil {
		return usage("explain explains one cell: %w", err)
	}
	plan, err = choose(plan, selection{Strategies: []string{strategy}, Scenarios: []string{scenarioName}, Runs: 1}, shop)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.err, "running %s:%s; --from FILE explains a saved result\n", strategy, scenarioName)
	r, err := measure(ctx, plan, shop, s)
	if err != nil || len(r.Cells) == 0 {
		return err
	}
	return c.show(r.Cells[0], s)
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
	if c.Mermaid {
		report.Mermaid(s.out, cell)
	} else {
		s.terminal().Explain(cell)
	}
	if cell.Surprise() {
		return errSurprised
	}
	return nil
}
