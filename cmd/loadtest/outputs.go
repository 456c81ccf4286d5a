package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"stocklock/internal/lab/live"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/wholefile"
)

// outputs are the files that results are written to besides the terminal, and the conditions that
// make a run fail besides a surprise.
type outputs struct {
	JSON     string   `name:"json" placeholder:"FILE" help:"Also write the results here as JSON, from which loadtest report makes any other form. With - as the FILE of any of these four, it is written to standard output, and the table to standard error."`
	HTML     string   `name:"html" placeholder:"FILE" help:"Also write them here as one page for a browser, which needs no network."`
	CSV      string   `name:"csv" placeholder:"FILE" help:"Also write the numbers here, one line a cell."`
	Markdown string   `placeholder:"FILE" help:"Also write a table here, to paste into an issue or a pull request."`
	FailIf   []string `sep:"none" placeholder:"CONDITION" help:"Exit with 1 when a cell meets this, such as 'oversold>0' or 'p99>50ms', once for each condition: ${metrics}."`

	thresholds []report.Threshold
}

// toStdout is the file name for standard output. The terminal's report then goes to standard error.
const toStdout = "-"

// output is a file to write, and its form.
type output struct {
	flag, path string
	form       report.Form
}

func (o *outputs) wanted() []output {
	all := []output{
		{"--json", o.JSON, report.Report.JSON}, {"--html", o.HTML, live.Save},
		{"--csv", o.CSV, report.Report.CSV}, {"--markdown", o.Markdown, report.Report.Markdown},
	}
	return slices.DeleteFunc(all, func(out output) bool { return out.path == "" })
}

// check finds what is wrong with the outputs before anything is run. others are further files of
// the command.
func (o *outputs) check(others ...output) error {
	taken := map[string]string{}
	for _, out := range slices.Concat(others, o.wanted()) {
		if out.path == "" {
			continue
		}
		path, err := filepath.Abs(out.path)
		if err != nil {
			return usage("%s: %w", out.flag, err)
		}
		if other, ok := taken[path]; ok {
			return usage("%s and %s name the same file, %s: want a file for each", other, out.flag, out.path)
		}
		taken[path] = out.flag
	}
	for _, out := range o.wanted() {
		if out.path == toStdout {
			continue
		}
		if err := wholefile.Check(out.path); err != nil {
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

// beside returns streams for the output for people, beside the files.
func (o *outputs) beside(s streams) streams {
	if slices.ContainsFunc(o.wanted(), func(out output) bool { return out.path == toStdout }) {
		s.out = s.err
	}
	return s
}

func (out output) write(r report.Report, stdout io.Writer) error {
	if out.path == toStdout {
		return out.form(r, stdout)
	}
	return r.WriteFile(out.path, out.form)
}

// finish writes the files. It returns errSurprised for a run that counts as failed.
func (o *outputs) finish(r report.Report, s streams) error {
	var written []string
	for _, out := range o.wanted() {
		if err := out.write(r, s.out); err != nil {
			return err
		}
		if out.path != toStdout {
			written = append(written, out.path)
		}
	}
	if len(written) > 0 {
		fmt.Fprintln(o.beside(s).out, "wrote", strings.Join(written, ", "))
	}
	failed := len(r.Surprises()) > 0
	for _, t := range o.thresholds {
		for _, line := range t.Broken(r) {
			fmt.Fprintln(o.beside(s).out, line)
			failed = true
		}
	}
	if failed {
		return errSurprised
	}
	return nil
}
