package main

import (
	"context"

	"stocklock/internal/report"
)

type runCommand struct {
	selection `embed:""`
	settings  `embed:""`

	JSON       string `name:"json" placeholder:"FILE" help:"Also write the results here, as JSON."`
	ExpectOnly bool   `help:"Only print what is expected of each cell."`
}

func (c *runCommand) Run(ctx context.Context, s streams) error {
	chosen, err := choose(c.selection, c.settings)
	if err != nil {
		return err
	}
	if c.ExpectOnly {
		s.terminal().Expected(chosen.strategies, chosen.scenarios, chosen.options.Options)
		return nil
	}
	if c.JSON != "" {
		if err := report.CheckWritable(c.JSON); err != nil {
			return usage("%w", err)
		}
	}
	status := newStatus(s.err)
	defer status.close()
	lab, err := openLab(ctx, chosen, status)
	if err != nil {
		return err
	}
	defer lab.close()
	cells, err := lab.runAll(ctx, status)
	status.close()
	r := report.Report{Environment: lab.environment(s.args), Cells: cells, Interrupted: ctx.Err() != nil}
	if err != nil && ctx.Err() == nil {
		return err
	}
	s.terminal().Report(r)
	if c.JSON != "" {
		if err := r.WriteJSON(c.JSON); err != nil {
			return err
		}
	}
	if len(r.Surprises()) > 0 {
		return errSurprised
	}
	return nil
}
