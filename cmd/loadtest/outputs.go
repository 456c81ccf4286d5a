package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"stocklock/internal/lab/live"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/wholefile"
)

// outputs are the files that a result is written to besides the terminal.
type outputs struct {
	Out []string `sep:"none" placeholder:"FILE" help:"Also write the result here, once for each file. The end of its name says the form: ${forms}. With - it goes to standard output as JSON, and what is for people to standard error."`
}

// toStdout is the file name for standard output.
const toStdout = "-"

// forms has the function that writes a result, by the end of a file's name.
type forms map[string]func(io.Writer) error

// named are the outputs whose names end so.
func (o outputs) named(end string) []string {
	return slices.DeleteFunc(slices.Clone(o.Out), func(path string) bool { return filepath.Ext(path) != end })
}

// check finds what is wrong with the outputs before anything is run. ends are those that names can have.
func (o outputs) check(ends ...string) error {
	taken := map[string]bool{}
	for _, out := range o.Out {
		path, err := filepath.Abs(out)
		switch {
		case err != nil:
			return usage("--out: %w", err)
		case taken[path]:
			return usage("--out names %s twice: want a file for each", out)
		case out == toStdout:
		case !slices.Contains(ends, filepath.Ext(out)):
			return usage("--out %s: want - or a name that ends in %s", out, strings.Join(ends, ", "))
		default:
			if err := wholefile.Check(out); err != nil {
				return usage("--out: %w", err)
			}
		}
		taken[path] = true
	}
	return nil
}

// beside returns streams for the output for people, beside the files.
func (o outputs) beside(s streams) streams {
	if slices.Contains(o.Out, toStdout) {
		s.out = s.err
	}
	return s
}

// write writes the files. Standard output gets the form of an end.
func (o outputs) write(s streams, in forms, stdout string) error {
	var written []string
	for _, out := range o.Out {
		form := in[filepath.Ext(out)]
		switch {
		case out == toStdout:
			if err := in[stdout](s.out); err != nil {
				return err
			}
		case form != nil:
			if err := wholefile.Write(out, form); err != nil {
				return err
			}
			written = append(written, out)
		}
	}
	if len(written) > 0 {
		fmt.Fprintln(o.beside(s).out, "wrote", strings.Join(written, ", "))
	}
	return nil
}

// writeJSON writes a value that has no other form.
func (o outputs) writeJSON(s streams, v any) error {
	return o.write(s, forms{".json": func(w io.Writer) error {
		out := json.NewEncoder(w)
		out.SetIndent("", "  ")
		return out.Encode(v)
	}}, ".json")
}

// reportOutputs are those of a report, and the conditions that make a run fail besides a surprise.
type reportOutputs struct {
	outputs `embed:"" set:"forms=.json, from which loadtest report makes the others; .html, one page for a browser; .csv, a line a cell; .md, to paste into an issue; .xml, JUnit's"`
	Format  string   `enum:"json,html,csv,md,xml" default:"json" help:"The form of --out -: ${enum}."`
	FailIf  []string `sep:"none" placeholder:"CONDITION" help:"Exit with 1 when a cell meets this, such as 'oversold>0' or 'p99>50ms', or no cell has the metric, once for each condition: ${metrics}."`

	thresholds []report.Threshold
}

// reportForms are those of --out by the ends of names.
var reportForms = map[string]report.Form{
	".json": report.Report.JSON, ".html": live.Save, ".csv": report.Report.CSV, ".md": report.Report.Markdown, ".xml": report.Report.JUnit,
}

func (o *reportOutputs) check(more ...string) error {
	if err := o.outputs.check(slices.Concat(slices.Sorted(maps.Keys(reportForms)), more)...); err != nil {
		return err
	}
	if o.Format != "" && o.Format != "json" && !slices.Contains(o.Out, toStdout) {
		return usage("--format %s is the form of --out -: want --out -, or --out FILE.%s", o.Format, o.Format)
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

// failed is the error of a command that may count as failed. Then the exit code says that, and nothing else would say err.
func (s streams) failed(failed bool, err error) error {
	if !failed {
		return err
	}
	if err != nil {
		fmt.Fprintln(s.err, "loadtest:", err)
	}
	return errSurprised
}

// finish writes the files. It returns errSurprised for a run that counts as failed. Unkept is what could not be kept before.
func (o *reportOutputs) finish(r report.Report, s streams, unkept error) error {
	in := forms{}
	for end, form := range reportForms {
		in[end] = func(w io.Writer) error { return form(r, w) }
	}
	err := errors.Join(unkept, o.write(s, in, "."+o.Format))
	failed := len(r.Surprises()) > 0
	for _, t := range o.thresholds {
		for _, line := range t.Broken(r) {
			fmt.Fprintln(o.beside(s).out, line)
			failed = true
		}
	}
	return s.failed(failed, err)
}
