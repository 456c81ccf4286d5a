package main

import (
	"io"
	"regexp"
	"strings"
	"testing"

	"stocklock/internal/lab/report"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/survey"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/strategy/declared"
)

// TestCellsOfBasketsRuleOnTheirProperties: what explorations do not decide is decided by cells, and a cell
// that is half-sold or unclaimed where it should hold contradicts.
func TestCellsOfBasketsRuleOnTheirProperties(t *testing.T) {
	properties := declared.Properties{Has: declared.Whole | declared.Complete | declared.AddsUp, NotApplicable: declared.FreesLocks}
	of := declared.Strategy{Baskets: &properties}
	cell := func(name string, verdict verdict.Kind) trial.Result {
		sc, err := scenario.ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		expected := sc.Expected(of)
		return trial.Result{Strategy: "mine", Scenario: name, Group: trial.Baskets, Verdict: verdict, Expected: expected.Verdict, Because: expected.Because}
	}
	for _, broken := range []verdict.Kind{verdict.HalfSold, verdict.Unclaimed} {
		judgements := survey.Judge(of, schedule.Sales{Baskets: true}, nil)
		addCells(judgements, report.Report{Cells: []trial.Result{
			cell("death-between-lines", broken), cell("same-item-twice", verdict.Held), cell("crossed", verdict.Left), cell("death-between-locks", verdict.Inapplicable),
		}})
		want := map[declared.Property]survey.Ruling{
			declared.Whole: survey.Contradicts, declared.AddsUp: survey.Agrees, declared.Crossable: survey.Agrees,
			declared.FreesLocks: survey.NotDecided, declared.Unstarved: survey.NotDecided,
		}
		for _, j := range judgements {
			if ruling, ok := want[j.Property]; ok && j.Ruling != ruling {
				t.Errorf("%s: %s by %s, want %s", j.Property, j.Ruling, j.By, ruling)
			}
		}
	}
}

// TestCellsRuleOnProperties: one cell that does not do what is expected contradicts, whatever the
// other cells of its property and the explorations say.
func TestCellsRuleOnProperties(t *testing.T) {
	properties := declared.Properties{Has: declared.Exclusive | declared.SurvivesDataLoss | declared.Recovers | declared.DurableAnswers}
	cell := func(name string, verdict, expected verdict.Kind) trial.Result {
		sc, _ := scenario.ByName(name)
		because := sc.Expected(declared.Strategy{Properties: properties}).Because
		return trial.Result{Strategy: "mine", Scenario: name, Verdict: verdict, Expected: expected, Because: because}
	}
	judgements := survey.Judge(declared.Strategy{Properties: properties}, schedule.Sales{}, nil)
	addCells(judgements, report.Report{Cells: []trial.Result{
		cell("crash", verdict.Held, verdict.Held),
		cell("failover", verdict.Oversold, verdict.Held),
		cell("redis-restart", verdict.Held, verdict.Held),
		cell("pause", verdict.Oversold, verdict.Oversold),
		cell("overrun", verdict.Invalid, verdict.Oversold),
	}})
	want := map[declared.Property]survey.Ruling{
		declared.Exclusive: survey.NotDecided, declared.Recovers: survey.Agrees, declared.SurvivesDataLoss: survey.Contradicts,
		declared.PauseProof: survey.Agrees, declared.Renews: survey.NotDecided,
	}
	for _, j := range judgements {
		if ruling, ok := want[j.Property]; ok && j.Ruling != ruling {
			t.Errorf("%s: %s by %s, want %s", j.Property, j.Ruling, j.By, ruling)
		}
	}
}

// TestTheJudgementIsSaidInChinese: what stays are the names of properties, strategies and causes.
func TestTheJudgementIsSaidInChinese(t *testing.T) {
	judgements := survey.Judge(declared.Strategy{Properties: declared.Properties{Has: declared.Exclusive, NotApplicable: declared.Renews}}, schedule.Sales{}, nil)
	judgements[0].By = words.Of("judge.cell", "scenario", "pause", "verdict", verdict.Held, "expected", verdict.Oversold)
	var out strings.Builder
	c := exploreCommand{}
	err := c.rule(streams{out: &out, err: &out, lang: words.Chinese}, judgements, []schedule.Record{{Outcome: schedule.Outcome{Verdict: verdict.Lied, Cause: verdict.NoOrder}}}, false)
	if err != errSurprised {
		t.Errorf("a schedule that nothing explains is no surprise: %v", err)
	}
	for unruled, want := range map[bool]error{true: errSurprised, false: nil} {
		if err := c.rule(streams{out: io.Discard, err: io.Discard}, judgements, nil, unruled); err != want {
			t.Errorf("a surprise that no ruling has: %v: %v, want %v", unruled, err, want)
		}
	}
	said := out.String()
	for _, name := range append(declared.AllProperties(), declared.ReadsSource) {
		said = strings.ReplaceAll(said, name.String(), "")
	}
	for _, name := range []string{"pause", "no-order"} {
		said = strings.Replace(said, name, "", 1)
	}
	if english := regexp.MustCompile(`[A-Za-z]+`).FindString(said); english != "" {
		t.Errorf("it says %q in:\n%s", english, out.String())
	}
}
