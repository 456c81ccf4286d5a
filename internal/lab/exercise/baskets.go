package exercise

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/rig"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
)

// basketTries is how often cells are run that could not be judged.
const basketTries = 3

// baskets runs the cells of the exercise. The first that breaks decides.
func (c *Checker) baskets(ctx context.Context, a Answer, done func(words.Text)) (Verdict, error) {
	if len(a.Exercise.Baskets) == 0 {
		return Verdict{}, nil
	}
	way, err := c.shop.Any(a.Name)
	if err != nil {
		return Verdict{}, err
	}
	left, unknown := a.Exercise.Baskets, error(nil)
	for range basketTries {
		plan := matrix.Plan{Runs: 1, Seed: 1, Shop: c.shop.Program, RedisServer: c.RedisServer}
		for _, s := range left {
			plan.Pairs = append(plan.Pairs, matrix.Pair{Strategy: way, Scenario: s})
		}
		status := matrix.NewStatus(io.Discard, 0)
		r, err := matrix.Run(ctx, plan, status)
		status.Close()
		if err == nil && r.Interrupted {
			err = context.Cause(ctx)
		}
		if err != nil {
			return Verdict{}, err
		}
		for _, cell := range r.Cells {
			if cell.Verdict != verdict.Held {
				if v := judgeCell(docOf(left[0]), cell); v.Cause != "" {
					return v, nil
				}
				err = fmt.Errorf("%s: nothing is known, check again on a quieter machine: %s", left[0].Name, cell.Problem)
				break
			}
			done(words.Of("exercise.cell", "name", left[0].Name, "doc", docOf(left[0])))
			left = left[1:]
		}
		if len(left) == 0 {
			return Verdict{}, nil
		}
		unknown = err
	}
	return Verdict{}, unknown
}

// docOf is what a scenario does.
func docOf(s trial.Scenario) words.Text { return words.Text{Key: "scenario." + s.Name, Words: s.Doc} }

// judgeCell says why a cell did not hold. It returns no cause where that is not known.
func judgeCell(doc words.Text, r trial.Result) Verdict {
	v := verdict.Of(r.Verdict)
	switch {
	case v.Bad:
		said := words.Of("exercise.broke", "doc", doc, "verdict", v.Kind, "n", v.Number(r.Facts()), "means", v.Means(r.Group))
		return Verdict{Cause: verdict.Cause(r.Scenario), Said: said, Story: r.Story}
	case r.FirstError != "":
		return Verdict{Cause: verdict.Crash, Said: words.Of("exercise.errors", "doc", doc, "error", cmp.Or(rig.Panicked(r.FirstError), r.FirstError)), Story: r.Story}
	case strings.Contains(r.Problem, trial.ErrPassedBy.Error()):
		return Verdict{Cause: verdict.NotSeen, Said: words.Of("exercise.not-seen", "doc", doc)}
	}
	return Verdict{}
}
