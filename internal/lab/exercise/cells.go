package exercise

import (
	"context"
	"fmt"
	"io"
	"strings"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/strategy"
)

// cellTries is how often cells are run that could not be judged.
const cellTries = 3

// cell is one that the exercise asks for.
type cell struct{ name, doc string }

// baskets runs the cells of several items.
func (c *Checker) baskets(ctx context.Context, a Answer, done func(string)) (Verdict, error) {
	if len(a.Exercise.Baskets) == 0 {
		return Verdict{}, nil
	}
	way, err := c.shop.BasketByName(a.Name)
	if err != nil {
		return Verdict{}, err
	}
	var cells []cell
	var pairs []matrix.BasketPair
	for _, s := range a.Exercise.Baskets {
		cells = append(cells, cell{s.Name, s.Doc})
		pairs = append(pairs, matrix.BasketPair{Strategy: way, Scenario: s})
	}
	return c.cells(ctx, cells, done, func(p matrix.Plan, from int, status *matrix.Status) (report.Report, error) {
		return matrix.RunBaskets(ctx, p, pairs[from:], status)
	})
}

// topologies runs the cells whose database is more than one server.
func (c *Checker) topologies(ctx context.Context, a Answer, done func(string)) (Verdict, error) {
	if len(a.Exercise.Topologies) == 0 {
		return Verdict{}, nil
	}
	of, err := c.shop.ByName(a.Name)
	if err != nil {
		return Verdict{}, err
	}
	var cells []cell
	for _, t := range a.Exercise.Topologies {
		cells = append(cells, cell{t.Name(), t.Doc()})
	}
	return c.cells(ctx, cells, done, func(p matrix.Plan, from int, status *matrix.Status) (report.Report, error) {
		return matrix.RunTopologies(ctx, p, a.Exercise.Topologies[from:], []strategy.Description{of}, status)
	})
}

// cells runs cells from one on, until all have held. The first that breaks decides.
func (c *Checker) cells(ctx context.Context, cells []cell, done func(string), run func(p matrix.Plan, from int, status *matrix.Status) (report.Report, error)) (Verdict, error) {
	held, unknown := 0, error(nil)
	for range cellTries {
		status := matrix.NewStatus(io.Discard, false)
		r, err := run(matrix.Plan{Runs: 1, Seed: 1, Shop: c.shop.Program, RedisServer: c.RedisServer}, held, status)
		status.Close()
		if err == nil && r.Interrupted {
			err = context.Cause(ctx)
		}
		if err != nil {
			return Verdict{}, err
		}
		for _, result := range r.Cells {
			of := cells[held]
			if result.Verdict != verdict.Held {
				if v := judgeCell(of.doc, result); v.Cause != "" {
					return v, nil
				}
				err = fmt.Errorf("%s: nothing is known, check again on a quieter machine: %s", of.name, result.Problem)
				break
			}
			done(of.name + ": " + of.doc)
			held++
		}
		if held == len(cells) {
			return Verdict{}, nil
		}
		unknown = err
	}
	return Verdict{}, unknown
}

// judgeCell says why a cell did not hold. It returns no cause where that is not known.
func judgeCell(doc string, r trial.Result) Verdict {
	v := verdict.Of(r.Verdict)
	switch {
	case v.Bad:
		said := fmt.Sprintf("%s: %s: %s", doc, v.Counted(r.Facts()), strings.TrimSuffix(v.En.Means, "."))
		if len(r.Story) > 0 {
			said += ": " + strings.Join(r.Story, "; ")
		}
		if r.Explanation != nil {
			said += ": " + explain.English.Say(r.Explanation.Why...)
		}
		return Verdict{Cause: Cause(r.Scenario), Said: said}
	case strings.Contains(r.Problem, "A was answered with sold"):
		return Verdict{Cause: NotSeen, Said: doc + ": A was sold all of it, and was never seen between two lines: call taken after each line"}
	}
	return Verdict{}
}
