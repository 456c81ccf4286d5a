package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/step"
	"stocklock/internal/lab/survey"
	"stocklock/internal/lab/tabular"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/strategy/declared"
)

type judgeCommand struct {
	Strategy  string `arg:"" help:"A strategy of the shop, or a way of taking several items or of reserving: see loadtest list."`
	Baskets   bool   `help:"Judge its sales of several items. Those of ways that only sell baskets always are."`
	Scenarios bool   `default:"true" negatable:"" help:"Run the scenarios, too."`
	JSON      bool   `name:"json" help:"Print the judgement as JSON."`

	stageSettings `embed:""`
}

// Help is shown under the flags.
func (*judgeCommand) Help() string {
	return `For authors of a lock: every property that a strategy declares is attacked by the scenario and by the
exploration made for it. A property agrees, contradicts, or is not decided.

    loadtest judge set-ex-nx
    loadtest judge fenced --baskets
    loadtest judge locks-unsorted

Exit codes: 0 nothing contradicts, 1 something does.`
}

func (c *judgeCommand) Run(ctx context.Context, s streams) error {
	var of declared.Strategy
	shop, err := c.catalog(ctx, s, func(shop *catalog.Catalog) (err error) {
		if of, err = shop.Any(c.Strategy); err != nil {
			return usage("%w", err)
		}
		if c.Baskets = c.Baskets || of.OnlyBaskets; c.Baskets && of.Baskets == nil {
			return usage("%s sells one item at a time", of.Name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	defer shop.Close()
	of, results, err := c.explore(ctx, s, shop, of)
	if err != nil {
		return err
	}
	reserving := slices.DeleteFunc(slices.Clone(results), func(r survey.Result) bool { return !r.Reservations })
	results = slices.DeleteFunc(results, func(r survey.Result) bool { return r.Reservations })
	var judgements []survey.Judgement
	var unexplained []schedule.Record
	switch {
	case c.Baskets:
		judgements, unexplained = survey.JudgeBaskets(of, results), survey.UnexplainedOfBaskets(of, results)
	case !of.OnlyReservations:
		judgements, unexplained = survey.Judge(of, results), survey.Unexplained(of, results)
	}
	if of.Reservations != nil && !c.Baskets {
		judgements = append(judgements, survey.JudgeReservations(of, reserving)...)
		unexplained = append(unexplained, survey.UnexplainedOfReservations(of, reserving)...)
	}
	if c.Scenarios {
		r, err := c.measure(ctx, s, shop, of)
		if err != nil {
			return err
		}
		addCells(judgements, r)
	}
	return c.print(s, judgements, unexplained)
}

// measure runs the strategy under every scenario.
func (c *judgeCommand) measure(ctx context.Context, s streams, shop *catalog.Catalog, of declared.Strategy) (report.Report, error) {
	group := scenario.OneServer
	switch {
	case c.Baskets:
		group = trial.Baskets
	case of.OnlyReservations:
		group = trial.Reservations
	}
	plan, err := choose(usualPlan(1, c.redisSettings), selection{Strategies: []string{of.Name}, Scenarios: []string{group}, Runs: 1}, shop)
	if err != nil {
		return report.Report{}, err
	}
	plan.MySQLSet = c.MySQLSet
	return measure(ctx, plan, shop, s)
}

// explore returns what the strategy declares for the MySQL of the stage, and what was found there.
func (c *judgeCommand) explore(ctx context.Context, s streams, shop *catalog.Catalog, of declared.Strategy) (declared.Strategy, []survey.Result, error) {
	if why := step.Unplayable(of); why != "" {
		fmt.Fprintf(s.err, "%s: not explored: %s\n", of.Name, why)
		return of, nil, nil
	}
	stage, err := c.open(ctx, s, shop, of)
	if err != nil {
		return of, nil, err
	}
	defer stage.Close()
	why, err := stage.Lacks(ctx, of)
	if err != nil || why != "" {
		if why != "" {
			fmt.Fprintf(s.err, "%s: not explored: it %s\n", of.Name, why)
		}
		return of, nil, err
	}
	surveys := survey.Default(of)
	if c.Baskets {
		surveys = survey.DefaultOfBaskets(of)
	}
	var results []survey.Result
	for _, asked := range surveys {
		if err := asked.Run(ctx, stage, progress(s), func(r survey.Result) { results = append(results, r) }); err != nil {
			clearProgress(s)
			return of, nil, err
		}
	}
	clearProgress(s)
	return stage.Declared(of), results, nil
}

// addCells rules on the properties that scenarios attack. A cell that does not do what is expected
// of it contradicts, whatever was explored.
func addCells(judgements []survey.Judgement, r report.Report) {
	for i := range judgements {
		j := &judgements[i]
		for _, cell := range r.Cells {
			sc, err := scenario.ByName(cell.Scenario)
			if err != nil || sc.Attacks != j.Property || cell.Verdict == verdict.Invalid || cell.Verdict == verdict.Skipped || cell.Verdict == verdict.Inapplicable {
				continue
			}
			by := fmt.Sprintf("%s: %s", cell.Scenario, cell.Verdict)
			switch {
			case cell.Surprise():
				j.Ruling, j.By = survey.Contradicts, fmt.Sprintf("%s, expected %s", by, cell.Expected)
			case j.Ruling == survey.NotDecided && j.Declared != declared.NotApplicable && cell.Because == (trial.Decisive{Property: j.Property.String(), Standing: j.Declared}):
				j.Ruling, j.By = survey.Agrees, by
			}
		}
	}
}

func (c *judgeCommand) print(s streams, judgements []survey.Judgement, unexplained []schedule.Record) error {
	contradicted := len(unexplained)
	t := tabular.New()
	t.AppendHeader(table.Row{"property", "declared", "seen", "by"})
	type line struct {
		Property string            `json:"property"`
		Declared declared.Standing `json:"declared"`
		Ruling   survey.Ruling     `json:"ruling"`
		By       string            `json:"by"`
	}
	var lines []line
	for _, j := range judgements {
		if j.Ruling == survey.Contradicts {
			contradicted++
		}
		t.AppendRow(table.Row{j.Property.String(), j.Declared, j.Ruling, j.By})
		lines = append(lines, line{j.Property.String(), j.Declared, j.Ruling, j.By})
	}
	for _, bad := range unexplained {
		by := fmt.Sprintf("no property that it lacks explains %s by %s: %s", bad.Outcome.Verdict, bad.Outcome.Cause, bad.Schedule)
		t.AppendRow(table.Row{"all together", "", survey.Contradicts, by})
		lines = append(lines, line{"", declared.NotApplicable, survey.Contradicts, by})
	}
	if c.JSON {
		if err := s.json(lines); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(s.out, t.Render())
	}
	if contradicted > 0 {
		return errSurprised
	}
	return nil
}
