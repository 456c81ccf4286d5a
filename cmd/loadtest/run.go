package main

import (
	"context"
	"errors"

	"stocklock/internal/lab/report"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/wholefile"
)

type runCommand struct {
	selection `embed:""`
	settings  `embed:""`
	outputs   `embed:""`

	Results    string `placeholder:"FILE" help:"Also write every request here, for vegeta report and vegeta plot."`
	ExpectOnly bool   `help:"Only print what is expected of each cell."`
}

func (c *runCommand) Run(ctx context.Context, s streams) error {
	chosen, err := choose(c.selection, c.settings)
	if err != nil {
		return err
	}
	if c.ExpectOnly {
		s.terminal().Expected(chosen.wants, chosen.options.Options)
		return nil
	}
	if err := c.outputs.check(output{flag: "--results", path: c.Results}); err != nil {
		return err
	}
	var results *wholefile.File
	if c.Results != "" {
		if results, err = wholefile.Create(c.Results); err != nil {
			return usage("%w", err)
		}
		defer results.Discard()
		chosen.options.Records = trial.NewRecords(results)
	}
	r, err := measure(ctx, chosen, s)
	if err != nil {
		return err
	}
	if results != nil {
		if err := errors.Join(chosen.options.Records.Flush(), results.Commit()); err != nil {
			return err
		}
	}
	c.outputs.beside(s).terminal().Report(r)
	return c.outputs.finish(r, s)
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
