package exercise

import (
	"context"
	"fmt"
	"io"
	"strings"

	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
)

// basketTries is how often cells are run that could not be judged.
const basketTries = 3

// baskets runs the cells of the exercise. The first that breaks decides.
func (c *Checker) baskets(ctx context.Context, a Answer, done func(string)) (Verdict, error) {
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
		status := matrix.NewStatus(io.Discard, false)
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
				if v := judgeCell(left[0].Doc, cell); v.Cause != "" {
					return v, nil
				}
				err = fmt.Errorf("%s: nothing is known, check again on a quieter machine: %s", left[0].Name, cell.Problem)
				break
			}
			done(left[0].Name + ": " + left[0].Doc)
			left = left[1:]
		}
		if len(left) == 0 {
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
		said := fmt.Sprintf("%s: %s: %s", doc, v.Counted(r.Facts()), strings.TrimSuffix(words.English.Say(v.Means()), "."))
		if len(r.Story) > 0 {
			said += ": " + words.English.Joined("; ", r.Story...)
		}
		return Verdict{Cause: verdict.Cause(r.Scenario), Said: said}
	case strings.Contains(r.Problem, trial.ErrPassedBy.Error()):
		return Verdict{Cause: verdict.NotSeen, Said: doc + ": A was sold all of it, and was never seen between two lines: call taken after each line"}
	}
	return Verdict{}
}
