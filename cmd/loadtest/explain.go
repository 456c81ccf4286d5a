package main

import (
	"cmp"
	"context"

	"stocklock/internal/lab/report"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/strategy/ladder"
)

type explainCommand struct {
	Strategy string `arg:"" help:"One of ${strategies}."`
	Scenario string `arg:"" help:"One of ${scenarios}."`
	settings `embed:""`

	Mermaid bool `help:"Print a Mermaid sequence diagram instead, which GitHub draws in Markdown."`
}

func (c *explainCommand) Run(ctx context.Context, s streams) error {
	_, unknownStrategy := ladder.ByName(c.Strategy)
	_, unknownScenario := scenario.ByName(c.Scenario)
	if err := cmp.Or(unknownStrategy, unknownScenario); err != nil {
		return usage("explain explains one cell: %w", err)
	}
	plan, err := choose(selection{Strategies: []string{c.Strategy}, Scenarios: []string{c.Scenario}, Runs: 1}, c.settings)
	if err != nil {
		return err
	}
	r, err := measure(ctx, plan, s)
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
