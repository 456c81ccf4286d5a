package main

import (
	"stocklock/internal/report"
)

// outputs are the files that results are written to, besides the terminal.
type outputs struct {
	JSON     string `name:"json" placeholder:"FILE" help:"Also write the results here as JSON, from which loadtest report makes any other form."`
	HTML     string `name:"html" placeholder:"FILE" help:"Also write them here as one page for a browser, which needs no network."`
	CSV      string `name:"csv" placeholder:"FILE" help:"Also write the numbers here, one line a cell."`
	Markdown string `placeholder:"FILE" help:"Also write a table here, to paste into an issue or a pull request."`
}

// forms are the files that are wanted, each with what writes it.
func (o outputs) forms() map[string]report.Form {
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

// check finds what could not be written, before anything is run.
func (o outputs) check() error {
	for path := range o.forms() {
		if err := report.CheckWritable(path); err != nil {
			return usage("%w", err)
		}
	}
	return nil
}

func (o outputs) write(r report.Report) error {
	for path, form := range o.forms() {
		if err := r.WriteFile(path, form); err != nil {
			return err
		}
	}
	return nil
}
