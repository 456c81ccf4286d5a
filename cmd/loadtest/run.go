package main

import (
	"context"

	"stocklock/internal/report"
)

type runCommand struct {
	selection `embed:""`
	settings  `embed:""`
	outputs   `embed:""`

	ExpectOnly bool `help:"Only print what is expected of each cell."`
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
	if err := c.outputs.check(); err != nil {
		return err
	}
	r, err := measure(ctx, chosen, s)
	if err != nil {
		return err
	}
	s.terminal().Report(r)
	if err := c.outputs.write(r); err != nil {
		return err
	}
	if len(r.Surprises()) > 0 {
		return errSurprised
	}
	return nil
}

// measure runs what was chosen. When ctx ends it, the report has what there is.
func measure(ctx context.Context, ch chosen, s streams) (report.Report, error) {
	status := newStatus(s.err)
	defer status.close()
	lab, err := openLab(ctx, ch, status)
	if err != nil {
		return report.Report{}, err
	}
	defer lab.close()
	cells, err := lab.runAll(ctx, status)
	if err != nil && ctx.Err() == nil {
		return report.Report{}, err
	}
	return report.Report{Environment: lab.environment(s.args), Cells: cells, Interrupted: ctx.Err() != nil}, nil
}
