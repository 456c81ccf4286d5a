package report

import (
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"

	"stocklock/internal/lab/load"
	"stocklock/internal/lab/tabular"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/words"
)

// loads prints what a load with a rate showed: the latencies of each kind of answer, and a row for
// each step of a rate that changes.
func (t Terminal) loads(r Report) {
	if r.Environment.Rate == "" {
		return
	}
	t.latencies(r.Cells)
	t.steps(r.Cells)
	for _, c := range r.Cells {
		if warning := ranOut(c); warning != "" {
			t.wrapped(warning)
		}
	}
}

func (t Terminal) latencies(cells []trial.Result) {
	w := tabular.New()
	shown, titles := latenciesIn(inLatencies)
	for _, c := range cells {
		for _, o := range []struct {
			load.Outcome
			count int64
		}{{load.Sold, c.Answered}, {load.Busy, c.Busy}, {load.Conflict, c.Conflict}, {load.SoldOut, c.SoldOut}} {
			if l, ok := c.ByOutcome[o.Outcome]; ok {
				w.AppendRow(append(table.Row{c.Strategy, words.English.Named("outcome", string(o.Outcome)), o.count}, each(shown, l)...))
			}
		}
	}
	if w.Length() == 0 {
		return
	}
	t.heading("Latency by answer, in milliseconds from the scheduled time")
	t.print(w, append(table.Row{"strategy", "answer", "requests"}, titles...), tabular.Right(3, 3+len(shown)))
}

// each writes the numbers of a set of latencies.
func each(shown []metric, of trial.Latency) (row table.Row) {
	for _, m := range shown {
		row = append(row, whole(m.latency(of)))
	}
	return row
}

func (t Terminal) steps(cells []trial.Result) {
	w := tabular.New()
	shown, titles := latenciesIn(inSteps)
	var knees []string
	for _, c := range cells {
		for _, s := range c.Steps {
			keeps := "yes"
			if !s.KeptUp {
				keeps = t.paint(surprising, "no")
			}
			row := table.Row{c.Strategy, whole(s.Rate), s.Requests, s.Sold, s.Busy, s.SoldOut, whole(s.SalesPerSecond)}
			w.AppendRow(append(append(row, each(shown, s.Latency)...), keeps))
		}
		if len(c.Steps) > 0 {
			knees = append(knees, fmt.Sprintf("%s: %s", c.Strategy, knee(c.Steps)))
		}
	}
	if len(knees) == 0 {
		return
	}
	t.heading("Step by step: latencies of sales, in milliseconds from the scheduled time")
	header := table.Row{"strategy", "requests\n/s", "requests", "sold", "busy", "sold\nout", "sales\n/s"}
	t.print(w, append(append(header, titles...), "keeps\nup"), tabular.Right(2, len(header)+len(shown)))
	for _, k := range knees {
		t.wrapped(k)
	}
}

// knee says up to which rate sales keep up with requests.
func knee(steps []trial.Step) string {
	for i, s := range steps {
		switch {
		case s.KeptUp:
		case i == 0:
			return fmt.Sprintf("does not keep up with the first step, %s requests/s: %s sales/s", whole(s.Rate), whole(s.SalesPerSecond))
		default:
			return fmt.Sprintf("the knee is at %s requests/s. At %s it makes %s sales/s", whole(steps[i-1].Rate), whole(s.Rate), whole(s.SalesPerSecond))
		}
	}
	return fmt.Sprintf("keeps up with every step, to %s requests/s", whole(steps[len(steps)-1].Rate))
}

// enough is the part of a load with a rate for which the stock should last.
const enough = 0.75

// ranOut is a warning for a cell whose stock was sold long before the load ended, empty for others.
func ranOut(c trial.Result) string {
	if c.RanOutMS == 0 || c.RanOutMS > enough*c.LoadMS {
		return ""
	}
	return fmt.Sprintf("warning: %s: the stock of %d was sold after %.1f of %.1f s, and what came later measures sold-out answers. "+
		"Without --stock, the stock lasts for a --rate with an end.", c.Name(), c.InitialStock, c.RanOutMS/1000, c.LoadMS/1000)
}
