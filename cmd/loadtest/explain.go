package main

import (
	"context"

	"stocklock/internal/lab/report"
	"stocklock/internal/lab/scenario"
)

type explainCommand struct {
	Strategy string `arg:"" help:"A strategy of the shop: see loadtest list strategies."`
	Scenario string `arg:"" help:"One of ${scenarios}."`
	settings `embed:""`

	Mermaid bool `help:"Print a Mermaid sequence diagram instead, which GitHub draws in Markdown."`
}

func (c *explainCommand) Run(ctx context.Context, s streams) error {
	plan, err := c.plan()
	if err != nil {
		return err
	}
	if _, err := scenario.ByName(c.Scenario); err != nil {
		return usage("explain explains one cell: %w", err)
	}
	shop, err := c.catalog(ctx, s)
	if err != nil {
		return err
	}
	defer shop.Close()
	if _, err := shop.ByName(c.Strategy); err != nil {
		return usage("explain explains one cell: %w", err)
	}
	plan, err = choose(plan, selection{Strategies: []string{c.Strategy}, Scenarios: []string{c.Scenario}, Runs: 1}, shop)
	if err != nil {
		return err
	}
	r, err := measure(ctx, plan, shop, s)
	if err != nil || len(r.Cells) == 0 {
		return err
	}
	if c.Mermaid {
		report.Mermaid(s.out, r.Cells[0])
	} else {
		s.terminal().Explain(r.Cells[0])
	}
	if r.Cells[0].Surprise() {
		return errSurprised
	}
	return nil
}
