// Command shops measures what a sale costs: in the shop of this repository, in an earlier one, and in [mini].
// All are measured in turn on the same servers, so that only their ratios count.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/jedib0t/go-pretty/v6/table"
	"golang.org/x/perf/benchfmt"

	"stocklock/bench/measure"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/tabular"
	"stocklock/internal/lab/wholefile"
)

type options struct {
	Before string        `type:"existingfile" placeholder:"PROGRAM" help:"An earlier shop, to measure beside this one."`
	Now    string        `type:"existingfile" placeholder:"PROGRAM" help:"This repository's production shop. Without it, it is built."`
	Cases  []string      `placeholder:"CASE" help:"What to measure: ${cases}. Default: all."`
	Repeat int           `default:"3" help:"How often each shop is measured; the results are medians."`
	Length time.Duration `name:"for" default:"4s" help:"How long each measurement takes."`
	Save   string        `type:"path" placeholder:"FILE" help:"Also write all measurements to this file, in the format of Go's benchmarks."`
}

func main() {
	if os.Getenv(asMini) != "" {
		fmt.Fprintln(os.Stderr, mini(os.Getenv("SHOP_ADDR"), os.Getenv("SHOP_MYSQL")))
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends the program at once
	defer stop()
	var o options
	parsed := kong.Parse(&o, kong.Name("shops"), kong.Description("Measures what a sale costs in this repository's shop, beside an earlier one and one of sixty lines."),
		kong.Vars{"cases": names()})
	parsed.FatalIfErrorf(o.run(ctx, os.Stdout, os.Stderr))
}

// run measures, and prints a table for each case.
func (o options) run(ctx context.Context, out, log io.Writer) (err error) {
	chosen := cases
	if len(o.Cases) > 0 {
		chosen = nil
		for _, name := range o.Cases {
			c, err := scenario.Named("case", name, cases, func(c testCase) string { return c.name })
			if err != nil {
				return err
			}
			chosen = append(chosen, c)
		}
	}
	switch {
	case o.Repeat < 1 || o.Repeat > 100:
		return errors.New("--repeat: want 1 to 100")
	case o.Length < 100*time.Millisecond || o.Length > time.Hour:
		return errors.New("--for: want 100ms to 1h")
	case o.Save != "":
		if err := wholefile.Check(o.Save); err != nil {
			return err
		}
	}
	bench, err := open(ctx, o.Now, o.Before)
	if err != nil {
		return err
	}
	var all []*benchfmt.Result
	defer func() { err = errors.Join(err, bench.rig.Close()) }()
	for _, c := range chosen {
		sellers := slices.DeleteFunc(slices.Clone(c.sellers), func(s seller) bool { return s.before && o.Before == "" })
		var results []*benchfmt.Result
		for round := range o.Repeat {
			for n := range sellers {
				i := (n + round) % len(sellers) // no seller is always first
				fmt.Fprintf(log, "%d/%d  %s  %s\n", round+1, o.Repeat, c.name, sellers[i])
				got, err := bench.measure(ctx, c, sellers[i], o.Length)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", c.name, sellers[i], err)
				}
				results = append(results, got.named(c, sellers[i]))
			}
		}
		all = append(all, results...)
		print(out, c, sellers, measure.Tables(results)[0])
	}
	if o.Save == "" {
		return nil
	}
	return wholefile.Write(o.Save, func(to io.Writer) error { return measure.Write(to, all) })
}

// named is a result in the format of Go's benchmarks.
func (r result) named(c testCase, s seller) *benchfmt.Result {
	sample := measure.Sample{Operations: r.orders}
	for _, u := range units {
		sample.Values = append(sample.Values, benchfmt.Value{Value: u.of(r), Unit: u.name})
	}
	doc := []benchfmt.Config{{Key: "doc", Value: []byte(c.doc), File: true}}
	return measure.NewResult("Shop/"+c.name, s.String(), doc, sample)
}

// print prints the medians of a case, and what they are of those of its first seller.
func print(out io.Writer, c testCase, sellers []seller, results measure.Table) {
	w := tabular.New()
	head := table.Row{"shop"}
	for _, u := range units {
		head = append(head, strings.ReplaceAll(u.name, "-", " "), "of the first")
	}
	w.AppendHeader(head)
	for _, s := range sellers {
		row := table.Row{s}
		for _, u := range units {
			is, first := results.Row(s.String()).Median(u.name), results.Row(sellers[0].String()).Median(u.name)
			ratio := "" // of nothing there is none
			if first != 0 {
				ratio = fmt.Sprintf("%.2f", is/first)
			}
			row = append(row, fmt.Sprintf("%.4g", is), ratio)
		}
		w.AppendRow(row)
	}
	w.SetColumnConfigs(tabular.Right(2, len(head)))
	fmt.Fprintf(out, "%s: %s\n%s\n\n", c.name, c.doc, w.Render())
}
