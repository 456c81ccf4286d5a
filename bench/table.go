package main

import (
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"

	"stocklock/bench/measure"
	"stocklock/internal/lab/tabular"
)

// printCell prints all locks in one cell: medians, and for the share of the mutex also the range.
func printCell(out io.Writer, r measure.Results) {
	if r.Shape.Pairs {
		printPairs(out, r)
		return
	}
	s := r.Shape
	per := "a hold"
	switch {
	case s.Hold > 0:
		fmt.Fprintf(out, "%s: %d locks held at once, each with a lease of %s\n", s.Name, s.Hold, keptLease)
		per = "a lease of all"
	default:
		fmt.Fprintf(out, "%s, %s: %d × %d", s.Name, r.Section.Name, s.Processes, s.Goroutines)
		if s.Delay > 0 {
			fmt.Fprintf(out, ", round trips to Redis %s longer", s.Delay)
		}
		if s.Pause > 0 {
			fmt.Fprintf(out, ", each goroutine pausing for %s after each hold", s.Pause)
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "(requests, bytes, Redis µs, allocs: %s)\n", per)
	t := tabular.New()
	head := table.Row{"lock", "of mutex"}
	for _, m := range metrics {
		head = append(head, m.head)
	}
	head = append(head, "lost", "errors")
	t.AppendHeader(head)
	for _, l := range r.Locks {
		share := measure.SpreadOf(r.Ratio(l.Lock, limit, rate))
		row := table.Row{l.Lock, show("%.2f", share.Median) + ranged(share)}
		for _, m := range metrics {
			row = append(row, show(m.form, measure.SpreadOf(l.Of(m.of)).Median))
		}
		lost := sum(l.Of(func(s measure.Sample) float64 { return s.LostUpdates }))
		row = append(row, show("%.0f", lost), sum(l.Of(func(s measure.Sample) float64 { return s.Errors })))
		t.AppendRow(row)
	}
	t.SetColumnConfigs(tabular.Right(2, len(head)))
	fmt.Fprintln(out, t.Render())
	printExamples(out, r)
}

// printPairs prints how long each lock takes where nobody else wants it, beside the least that it could be.
func printPairs(out io.Writer, r measure.Results) {
	fmt.Fprintf(out, "%s: taken and left in turn with %s, in one goroutine, in the median\n", r.Shape.Name, measure.Raw)
	t := tabular.New()
	head := table.Row{"lock"}
	for _, m := range pairMetrics {
		head = append(head, m.head)
	}
	t.AppendHeader(head)
	for _, l := range r.Locks {
		row := table.Row{l.Lock}
		for _, m := range pairMetrics {
			row = append(row, show(m.form, measure.SpreadOf(l.Of(m.of)).Median))
		}
		row[len(row)-1] = fmt.Sprint(row[len(row)-1], ranged(measure.SpreadOf(l.Of(ofRaw))))
		t.AppendRow(row)
	}
	t.SetColumnConfigs(tabular.Right(2, len(head)))
	fmt.Fprintln(out, t.Render())
	printExamples(out, r)
}

// printExamples prints one error of each lock that had any.
func printExamples(out io.Writer, r measure.Results) {
	for _, l := range r.Locks {
		for _, s := range l.Samples {
			if s.Example != "" {
				fmt.Fprintf(out, "%s: %s\n", l.Lock, s.Example)
				break
			}
		}
	}
	fmt.Fprintln(out)
}

func ranged(s measure.Spread) string {
	if s.Min == s.Max || s.Min != s.Min {
		return ""
	}
	return fmt.Sprintf(" (%.2f–%.2f)", s.Min, s.Max)
}

func printShop(out io.Writer, ratios []shopRatio) {
	if len(ratios) == 0 {
		return
	}
	fmt.Fprintln(out, "shop: sales through cmd/loadtest, under one strategy against another")
	t := tabular.New()
	t.AppendHeader(table.Row{"strategy", "against", "shops", "sales/s", "ratio", "p99 ratio"})
	for _, r := range ratios {
		sales, p99 := measure.SpreadOf(r.Sales), measure.SpreadOf(r.P99)
		t.AppendRow(table.Row{r.Strategy, r.Against, r.Shops, show("%.0f", measure.SpreadOf(r.PerSecond).Median),
			show("%.2f", sales.Median) + ranged(sales), show("%.2f", p99.Median) + ranged(p99)})
	}
	t.SetColumnConfigs(tabular.Right(3, 6))
	fmt.Fprintln(out, t.Render())
	fmt.Fprintln(out)
}

func printTargets(out io.Writer, targets []target) {
	if len(targets) == 0 {
		return
	}
	t := tabular.New()
	t.AppendHeader(table.Row{"target", "want", "measured", ""})
	for _, g := range targets {
		t.AppendRow(table.Row{g.what, g.want(), show("%.3g", g.got.Median) + ranged(g.got), g.verdict()})
	}
	fmt.Fprintln(out, t.Render())
	fmt.Fprintln(out)
}
