package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/survey"
	"stocklock/internal/lab/tabular"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/strategy/declared"
)

// judge holds what a strategy declares against what is explored, and against its scenarios.
func (c *exploreCommand) judge(ctx context.Context, s streams, shop *catalog.Catalog, of declared.Strategy) error {
	as, err := c.as(of)
	if err != nil {
		return err
	}
	of, results, err := c.explored(ctx, s, shop, of)
	if err != nil {
		return err
	}
	var judgements []survey.Judgement
	if as != asReservations {
		judgements = survey.Judge(of, salesOf(as), results)
	}
	if of.Reservations != nil && as != asBaskets {
		judgements = append(judgements, survey.Judge(of, salesOf(asReservations), results)...)
	}
	if c.Scenarios {
		group := cmp.Or(as, scenario.OneServer)
		plan := matrix.Plan{RedisServer: string(c.RedisServer), MySQLSet: c.MySQLSet, Seed: 1}
		plan, err := choose(plan, []string{of.Name + ":" + group}, shop)
		if err != nil {
			return err
		}
		r, err := measure(ctx, plan, shop, s)
		switch {
		case err != nil:
			return err
		case r.Interrupted: // a ruling needs all cells
			return context.Cause(ctx)
		}
		addCells(judgements, r)
	}
	unruled := slices.ContainsFunc(results, func(r survey.Result) bool { return len(r.Unruled()) > 0 })
	return c.rule(s, judgements, survey.Unexplained(of, results), unruled)
}

// explored returns what the strategy declares for the MySQL of the stage, and what was found there. Each search has its line when
// it is over.
func (c *exploreCommand) explored(ctx context.Context, s streams, shop *catalog.Catalog, of declared.Strategy) (declared.Strategy, []survey.Result, error) {
	stage, err := c.open(ctx, s, shop, 0, of)
	if err != nil {
		return of, nil, err
	}
	defer stage.Close()
	why, err := unplayable(ctx, stage, of)
	if err != nil {
		return of, nil, err
	}
	if !why.IsZero() {
		fmt.Fprintln(s.err, s.say("explore.skipped", "name", of.Name, "why", why))
		if !c.Scenarios {
			return of, nil, errNoneExplored
		}
		return of, nil, nil
	}
	var results []survey.Result
	_, err = c.run(ctx, s, stage, of, func(r survey.Result) {
		results = append(results, r)
		fmt.Fprintln(s.err, resultLine(s, r))
		printSurprises(s, s.err, r.Unruled())
	})
	return stage.Declared(of, schedule.Sales{}), results, err
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
			by := []any{"scenario", cell.Scenario, "verdict", cell.Verdict}
			switch {
			case cell.Surprise():
				j.Ruling, j.By = survey.Contradicts, words.Of("judge.cell", append(by, "expected", cell.Expected)...)
			case j.Ruling == survey.NotDecided && j.Declared != declared.NotApplicable && cell.Because == (trial.Decisive{Property: j.Property.String(), Standing: j.Declared}):
				j.Ruling, j.By = survey.Agrees, words.Of("judge.cell", by...)
			}
		}
	}
}

// rule prints the judgement. It fails where something contradicts, and where a search has a surprise that no ruling has.
func (c *exploreCommand) rule(s streams, judgements []survey.Judgement, unexplained []schedule.Record, failed bool) error {
	for _, bad := range unexplained {
		by := words.Of("judge.unexplained", "verdict", bad.Outcome.Verdict, "cause", string(bad.Outcome.Cause), "schedule", bad.Schedule.String())
		judgements = append(judgements, survey.Judgement{Ruling: survey.Contradicts, By: by})
	}
	t := tabular.New()
	t.AppendHeader(s.terminal().Header("judge.property", "judge.declared", "judge.seen", "judge.by"))
	type line struct {
		Property string            `json:"property"`
		Declared declared.Standing `json:"declared"`
		Ruling   survey.Ruling     `json:"ruling"`
		By       string            `json:"by"`
	}
	var lines []line
	for _, j := range judgements {
		failed = failed || j.Ruling == survey.Contradicts
		name := j.Property.String() // empty for all of them together
		t.AppendRow(table.Row{cmp.Or(name, s.say("judge.together")), s.in().Named("declares", string(j.Declared)), s.in().Named("ruling", string(j.Ruling)), s.in().Say(j.By)})
		lines = append(lines, line{name, cmp.Or(j.Declared, declared.NotApplicable), j.Ruling, j.By.String()})
	}
	fmt.Fprintln(c.beside(s).out, t.Render())
	return s.failed(failed, c.writeJSON(s, lines))
}
