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
		if warning := ranOut(c); !warning.IsZero() {
			t.wrapped(t.in().Say(warning))
		}
	}
}

func (t Terminal) latencies(cells []trial.Result) {
	w := tabular.New()
	shown, titles := latenciesIn(t.in(), inLatencies)
	for _, c := range cells {
		for _, o := range []struct {
			load.Outcome
			count int64
		}{{load.Sold, c.Answered}, {load.Busy, c.Busy}, {load.Conflict, c.Conflict}, {load.SoldOut, c.SoldOut}} {
			if l, ok := c.ByOutcome[o.Outcome]; ok {
				w.AppendRow(append(table.Row{c.Strategy, t.in().Named("outcome", string(o.Outcome)), o.count}, each(shown, l)...))
			}
		}
	}
	if w.Length() == 0 {
		return
	}
	t.heading(t.say("report.latencies"))
	t.print(w, append(t.Header("strategy", "report.answer", "report.requests"), titles...), tabular.Right(3, 3+len(shown)))
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
	shown, titles := latenciesIn(t.in(), inSteps)
	var knees []string
	for _, c := range cells {
		for _, s := range c.Steps {
			keeps := t.say("report.yes")
			if !s.KeptUp {
				keeps = t.paint(surprising, t.say("report.no"))
			}
			row := table.Row{c.Strategy, whole(s.Rate), s.Requests, s.Sold, s.Busy, s.SoldOut, whole(s.SalesPerSecond)}
			w.AppendRow(append(append(row, each(shown, s.Latency)...), keeps))
		}
		if len(c.Steps) > 0 {
			knees = append(knees, c.Strategy+": "+t.in().Say(Knee(c.Steps)))
		}
	}
	if len(knees) == 0 {
		return
	}
	t.heading(t.say("report.steps"))
	header := t.Header("strategy", "report.rate", "report.requests", "outcome.sold", "outcome.busy", "outcome.sold_out", "report.sales")
	t.print(w, append(append(header, titles...), t.say("report.keeps")), tabular.Right(2, len(header)+len(shown)))
	for _, k := range knees {
		t.wrapped(k)
	}
}

// Knee says up to which rate sales keep up with requests. It is nothing for a load without steps.
func Knee(steps []trial.Step) words.Text {
	for i, s := range steps {
		switch {
		case s.KeptUp:
		case i == 0:
			return words.Of("knee.first", "next", whole(s.Rate), "sales", whole(s.SalesPerSecond))
		default:
			return words.Of("knee.at", "rate", whole(steps[i-1].Rate), "next", whole(s.Rate), "sales", whole(s.SalesPerSecond))
		}
	}
	if len(steps) == 0 {
		return words.Text{}
	}
	return words.Of("knee.none", "rate", whole(steps[len(steps)-1].Rate))
}

// enough is the part of a load with a rate for which the stock should last.
const enough = 0.75

// ranOut is a warning for a cell whose stock was sold long before the load ended, empty for others.
func ranOut(c trial.Result) words.Text {
	if c.RanOutMS == 0 || c.RanOutMS > enough*c.LoadMS {
		return words.Text{}
	}
	return words.Of("report.ran-out", "name", c.Name(), "stock", c.InitialStock, "seconds", fmt.Sprintf("%.1f", c.RanOutMS/1000), "of", fmt.Sprintf("%.1f", c.LoadMS/1000))
}
