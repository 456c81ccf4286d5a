package main

import (
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"

	"stocklock/bench/measure"
	"stocklock/internal/lab/tabular"
)

// printCell prints the medians of all locks in one cell, and the range of the share of the mutex.
func printCell(out io.Writer, r measure.Results) {
	if r.Shape.Pairs {
		printPairs(out, r)
		return
	}
	s := r.Shape
	per := "per hold"
	switch {
	case s.Hold > 0:
		fmt.Fprintf(out, "%s: %d locks held at once, each with a lease of %s\n", s.Name, s.Hold, keptLease)
		per = "per lease of all locks"
	default:
		fmt.Fprintf(out, "%s, %s: %d × %d", s.Name, r.Section.Name, s.Processes, s.Goroutines)
		if s.Delay > 0 {
			fmt.Fprintf(out, ", with %s more latency to Redis", s.Delay)
		}
		if s.Pause > 0 {
			fmt.Fprintf(out, ", with a pause of %s after each hold", s.Pause)
		}
		fmt.Fprintln(out)
		if section := sectionOf(r); section.Median == section.Median {
			fmt.Fprintf(out, "the section takes %.0f µs under the mutex, a round trip to Redis %.0f µs\n", section.Median, roundTripOf(r).Median)
		}
	}
	fmt.Fprintf(out, "(requests, bytes, Redis µs, allocs: %s)\n", per)
	t := tabular.New()
	head := table.Row{"lock", "of mutex", "µs over", "trips over"}
	for _, m := range metrics {
		head = append(head, m.head)
	}
	head = append(head, "lost", "errors")
	t.AppendHeader(head)
	for _, l := range r.Locks {
		share := measure.SpreadOf(r.Ratio(l.Lock, limit, rate))
		over := overMutex(r, l.Lock)
		row := table.Row{l.Lock, show("%.2f", share.Median) + ranged(share), show("%.0f", measure.SpreadOf(over).Median),
			show("%.1f", measure.SpreadOf(inRoundTrips(r, over)).Median)}
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

// printPairs prints how long each lock takes without contention, and relative to [measure.Raw].
func printPairs(out io.Writer, r measure.Results) {
	fmt.Fprintf(out, "%s: acquired and released alternately with %s by one goroutine; medians\n", r.Shape.Name, measure.Raw)
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

// printExamples prints one error of each lock that had errors.
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
	fmt.Fprintln(out, "shop: sales through cmd/loadtest, one strategy compared with another")
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
