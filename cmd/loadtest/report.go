package main

import (
	"slices"

	"stocklock/internal/lab/report"
)

type reportCommand struct {
	Files         []string `arg:"" name:"file" help:"Results that --out wrote: one to show, two to compare, before and after. With - it is standard input."`
	reportOutputs `embed:""`
}

// Help is shown under the flags.
func (*reportCommand) Help() string {
	return `Of two results, --fail-if is of the second one, and --out, which writes one result, wants one file.

Examples:

    loadtest report out/result.json --out out/report.html --out out/junit.xml
    loadtest report before.json after.json --fail-if 'oversold>0'
    loadtest run --out - | loadtest report - --out out/result.csv`
}

func (c *reportCommand) Run(s streams) error {
	switch {
	case len(c.Files) > 2:
		return usage("report takes one file, or two to compare, not %d", len(c.Files))
	case slices.Equal(c.Files, []string{"-", "-"}):
		return usage("standard input is one file: want - once")
	}
	if len(c.Files) == 2 && (len(c.Out) > 0 || c.Format != "json") {
		return usage("--out and --format write one result: want %s report %s with them", program(), quoted(c.Files[1]))
	}
	reports := make([]report.Report, len(c.Files))
	for i, path := range c.Files {
		var err error
		if reports[i], err = report.Read(path); err != nil {
			return usage("%w", err)
		}
	}
	if err := c.check(); err != nil {
		return err
	}
	now := reports[len(reports)-1]
	terminal := c.beside(s).terminal()
	if len(reports) == 2 {
		terminal.Compare(reports[0], now)
	} else {
		terminal.Report(now)
	}
	return c.finish(now, s, nil)
}
