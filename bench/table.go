package main

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"

	"stocklock/bench/measure"
	"stocklock/bench/worker"
	"stocklock/internal/lab/tabular"
)

// printTable prints what was measured in one cell: the medians of all locks, with the range of ratios.
func printTable(out io.Writer, t measure.Table) {
	fmt.Fprint(out, headOf(t))
	var units []measure.Unit
	head := table.Row{"lock"}
	for _, u := range measure.Units {
		if slices.ContainsFunc(t.Rows, func(r measure.Row) bool { return len(r.Sample(u.Name).Values) > 0 }) {
			units, head = append(units, u), append(head, u.Head)
		}
	}
	w := tabular.New()
	w.AppendHeader(head)
	for _, r := range t.Rows {
		row := table.Row{r.Name}
		for _, u := range units {
			row = append(row, u.Show(r))
		}
		w.AppendRow(row)
	}
	w.SetColumnConfigs(tabular.Right(2, len(head)))
	fmt.Fprintf(out, "%s\n\n", w.Render())
}

// headOf says what a table is of.
func headOf(t measure.Table) string {
	c, ok := measure.CellOf(t.Name)
	s := c.Shape
	switch {
	case !ok:
		return t.Name + ": sales through cmd/loadtest\n"
	case s.Pairs:
		can := map[worker.Form]string{worker.Plain: "cannot give up", worker.Cancellable: "has a context that can be cancelled", worker.Wait: "waits for a bounded time"}[s.Form]
		return fmt.Sprintf("%s: acquired and released alternately with %s and bsm-redislock by one goroutine that %s; the least of the rounds' medians\n", s.Name, measure.Raw, can)
	case s.Hold > 0:
		return fmt.Sprintf("%s: %d locks held at once, each with a lease of %s\n(requests, bytes, Redis µs, allocs: per lease of all locks)\n",
			s.Name, s.Hold, keptLease)
	}
	head := fmt.Sprintf("%s, %s: %d × %d", s.Name, c.Section.Name, s.Processes, s.Goroutines)
	if s.Delay > 0 {
		head += fmt.Sprintf(", with %s more latency to Redis", s.Delay)
	}
	if s.Pause > 0 {
		head += fmt.Sprintf(", with a pause of %s after each hold", s.Pause)
	}
	head += "\n"
	mutex := t.Row(measure.Limit)
	if section := 1e6 / mutex.Median(measure.Rate); !math.IsNaN(section) {
		head += fmt.Sprintf("the section takes %.0f µs under the mutex, a round trip to Redis %.0f µs\n", section, 1e6*mutex.Median(measure.TripSec))
	}
	return head + "(requests, bytes, Redis µs, allocs: per hold)\n"
}
