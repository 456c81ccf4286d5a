package main

import (
	_ "embed"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/template"

	"golang.org/x/perf/benchfmt"

	"stocklock/bench/measure"
	"stocklock/bench/peers"
	"stocklock/internal/lab/mistakes"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/survey"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/strategy/declared"
)

//go:embed page.md.tmpl
var source string

var form = template.Must(template.New("page").Funcs(template.FuncMap{"section": section}).Parse(source))

// section is the address of the section on a scenario, as seen from docs.
func section(name string) string { return strings.TrimPrefix(mistakes.Section(name, "en"), "docs/") }

// page is what docs/peers.md says.
type page struct {
	Environment report.Environment
	About       *benchfmt.Result // of which the configuration says at which commit, and under which load
	Commands    []string
	Scenarios   []trial.Scenario
	Rows        []row
	Skipped     []skipped
	Runs        int    // of each failing cell
	SalesBy     string // the command of the table of sales
	Explored    []survey.Result
	Bench       []benched
	BenchOn     string // the bench's environment
}

// row is a lock.
type row struct {
	declared.Strategy
	Version    string // of its module, empty for this repository's
	Besides    string
	Cells      []cell
	Notes      []noted
	Sales, P99 string
}

// cell is a lock under a scenario.
type cell struct {
	Scenario string
	Short    string // in the table of all
	Problem  string // why it was skipped
	// The rest is of a cell that did not hold.
	Verdict string
	Seen    string // in how many runs of how many
}

// skipped is why a scenario was not run for some locks.
type skipped struct {
	Scenario, Problem string
	Locks             []string
}

// Names lists the locks for the page.
func (s skipped) Names() string { return strings.Join(s.Locks, ", ") }

// noted is a note on scenarios that break a lock.
type noted struct {
	peers.Note
	On []string
}

// Names lists the scenarios for the page.
func (n noted) Names() string { return "`" + strings.Join(n.On, "`, `") + "`" }

// Broken are the cells in which the lock did not hold.
func (r row) Broken() []cell {
	return slices.DeleteFunc(slices.Clone(r.Cells), func(c cell) bool { return c.Verdict == "" })
}

func pageOf(in inputs) *page {
	p := &page{
		Environment: in.cells.Environment, Scenarios: scenario.Of(trial.OneServer), Commands: []string{in.cells.Environment.Command, in.again.Environment.Command},
		SalesBy: in.sales.Environment.Command, Explored: in.explored, About: in.bench[0],
	}
	for _, c := range in.again.Cells {
		p.Runs = max(p.Runs, c.Runs)
	}
	for _, of := range peers.Compared() {
		i := slices.IndexFunc(in.cells.Strategies, func(s declared.Strategy) bool { return s.Name == of.Name })
		if i >= 0 {
			p.Rows = append(p.Rows, rowOf(of, in.cells.Strategies[i], in))
		}
	}
	for _, r := range p.Rows {
		for _, c := range r.Cells {
			if c.Problem == "" {
				continue
			}
			i := slices.IndexFunc(p.Skipped, func(s skipped) bool { return s.Scenario == c.Scenario && s.Problem == c.Problem })
			if i < 0 {
				i, p.Skipped = len(p.Skipped), append(p.Skipped, skipped{Scenario: c.Scenario, Problem: c.Problem})
			}
			p.Skipped[i].Locks = append(p.Skipped[i].Locks, r.Name)
		}
	}
	p.Bench, p.BenchOn = benchedIn(in.bench), measure.Environment(in.bench[0])
	return p
}

func rowOf(of peers.Peer, s declared.Strategy, in inputs) row {
	r := row{Strategy: s, Besides: of.Besides}
	if of.Module != "" {
		r.Version = of.Module + " " + in.cells.Environment.Libraries[of.Module]
	}
	for _, sc := range scenario.Of(trial.OneServer) {
		first, ok := find(in.cells, s.Name, sc.Name)
		// The leases and waits of the sales are those of comparisons.
		sold, compared := find(in.sales, s.Name, sc.Name)
		more, repeated := find(in.again, s.Name, sc.Name)
		if compared {
			more, repeated = sold, true
			if sold.Verdict == verdict.Held {
				r.Sales, r.P99 = fmt.Sprintf("%.0f", sold.SalesPerSecond), fmt.Sprintf("%.0f", sold.Latency.P99)
			}
		}
		if !ok {
			r.Cells = append(r.Cells, cell{Scenario: sc.Name})
			continue
		}
		c := cellOf(first, more, repeated)
		r.Cells = append(r.Cells, c)
		if note, ok := of.Notes[sc.Name]; ok && c.Verdict != "" {
			i := slices.IndexFunc(r.Notes, func(n noted) bool { return n.Note == note })
			if i < 0 {
				i, r.Notes = len(r.Notes), append(r.Notes, noted{Note: note})
			}
			r.Notes[i].On = append(r.Notes[i].On, sc.Name)
		}
	}
	return r
}

func find(in report.Report, of, under string) (trial.Result, bool) {
	i := slices.IndexFunc(in.Cells, func(c trial.Result) bool { return c.Strategy == of && c.Scenario == under })
	if i < 0 {
		return trial.Result{}, false
	}
	return in.Cells[i], true
}

// cellOf is the cell of a result. The runs with other seeds count where it was repeated.
func cellOf(result, more trial.Result, repeated bool) cell {
	failed, runs := failures(result), result.Runs
	switch {
	case !repeated:
	case (result.Surprise() || more.Surprise()) && result.Verdict != verdict.Invalid:
		// Some runs failed and others held: all count, and one that failed is shown.
		failed, runs = failed+failures(more), runs+more.Runs
		if result.Verdict == verdict.Held {
			result = more
		}
	default:
		result, failed, runs = more, failures(more), more.Runs
	}
	c := cell{Scenario: result.Scenario, Short: string(result.Verdict)}
	switch result.Verdict {
	case verdict.Held:
	case verdict.Skipped, verdict.Inapplicable:
		c.Short, c.Problem = "–", result.Problem
	default:
		c.Verdict = c.Short
		if result.Verdict == verdict.Oversold {
			c.Short, c.Verdict = fmt.Sprintf("+%d", result.Oversold), fmt.Sprintf("oversold %d", result.Oversold)
		}
		c.Seen = fmt.Sprintf("%d of %d", failed, runs)
	}
	if result.Surprise() {
		c.Short += " !!"
	}
	return c
}

// failures is how many runs of a cell did not hold: of one that is to fail, how many failed as expected.
func failures(r trial.Result) int {
	if r.Expected == verdict.Held {
		return r.Runs - r.Agreed
	}
	return r.Agreed
}

// benched is what the bench measured in one shape.
type benched struct {
	measure.Cell
	measure.Table
}

func benchedIn(results []*benchfmt.Result) (all []benched) {
	for _, t := range measure.Tables(results) {
		if c, ok := measure.CellOf(t.Name); ok && !c.Shape.Pairs && c.Shape.Hold == 0 {
			all = append(all, benched{c, t})
		}
	}
	return all
}

// SectionUS and TripUS are the length of the section under the mutex and of a round trip.
func (b benched) SectionUS() string { return us(1 / b.Row(measure.Limit).Median(measure.Rate)) }
func (b benched) TripUS() string    { return us(b.Row(measure.Limit).Median(measure.TripSec)) }

func us(seconds float64) string {
	if math.IsNaN(seconds) {
		return "–"
	}
	return fmt.Sprintf("%.0f", 1e6*seconds)
}

func (p *page) write(to io.Writer) error { return form.Execute(to, p) }
