package main

import (
	"fmt"

	"stocklock/internal/report"
)

// outputs are the files that results are written to, besides the terminal, and what makes
// a run fail besides a surprise.
type outputs struct {
	JSON     string   `name:"json" placeholder:"FILE" help:"Also write the results here as JSON, from which loadtest report makes any other form."`
	HTML     string   `name:"html" placeholder:"FILE" help:"Also write them here as one page for a browser, which needs no network."`
	CSV      string   `name:"csv" placeholder:"FILE" help:"Also write the numbers here, one line a cell."`
	Markdown string   `placeholder:"FILE" help:"Also write a table here, to paste into an issue or a pull request."`
	FailIf   []string `sep:"none" placeholder:"CONDITION" help:"Exit with 1 when a cell meets this, such as 'oversold>0' or 'p99>50ms', once for each condition: ${metrics}."`

	thresholds []report.Threshold
}

// forms are the files that are wanted, each with what writes it.
func (o *outputs) forms() map[string]report.Form {
	forms := map[string]report.Form{}
	for path, form := range map[*string]report.Form{
		&o.JSON: report.Report.JSON, &o.HTML: report.Report.HTML, &o.CSV: report.Report.CSV, &o.Markdown: report.Report.Markdown,
	} {
		if *path != "" {
			forms[*path] = form
		}
	}
	return forms
}

// check finds what is wrong with them, before anything is run.
func (o *outputs) check() error {
	for path := range o.forms() {
		if err := report.CheckWritable(path); err != nil {
			return usage("%w", err)
		}
	}
	for _, spec := range o.FailIf {
		t, err := report.ParseThreshold(spec)
		if err != nil {
			return usage("--fail-if: %w", err)
		}
		o.thresholds = append(o.thresholds, t)
	}
	return nil
}

// finish writes the files, and says whether the run counts as failed.
func (o *outputs) finish(r report.Report, s streams) error {
	for path, form := range o.forms() {
		if err := r.WriteFile(path, form); err != nil {
			return err
		}
	}
	failed := len(r.Surprises()) > 0
	for _, t := range o.thresholds {
		for _, line := range t.Broken(r) {
			fmt.Fprintln(s.out, line)
			failed = true
		}
	}
	if failed {
		return errSurprised
	}
	return nil
}
