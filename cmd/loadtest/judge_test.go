package main

import (
	"testing"

	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/strategy"
)

// TestCellsRuleOnProperties: one cell that does not do what is expected contradicts, whatever the
// other cells of its property and the explorations say.
func TestCellsRuleOnProperties(t *testing.T) {
	declared := strategy.Properties{Has: strategy.Exclusive | strategy.SurvivesDataLoss | strategy.Recovers | strategy.DurableAnswers}
	cell := func(name string, verdict, expected verdict.Kind) trial.Result {
		sc, _ := scenario.ByName(name)
		because := sc.Expected(strategy.Description{Properties: declared}).Because
		return trial.Result{Strategy: "mine", Scenario: name, Verdict: verdict, Expected: expected, Because: because}
	}
	judgements := explore.Judge(declared, nil)
	addCells(judgements, report.Report{Cells: []trial.Result{
		cell("crash", verdict.Held, verdict.Held),
		cell("failover", verdict.Oversold, verdict.Held),
		cell("redis-restart", verdict.Held, verdict.Held),
		cell("pause", verdict.Oversold, verdict.Oversold),
		cell("overrun", verdict.Invalid, verdict.Oversold),
	}})
	want := map[strategy.Property]explore.Ruling{
		strategy.Exclusive: explore.NotDecided, strategy.Recovers: explore.Agrees, strategy.SurvivesDataLoss: explore.Contradicts,
		strategy.PauseProof: explore.Agrees, strategy.Renews: explore.NotDecided,
	}
	for _, j := range judgements {
		if ruling, ok := want[j.Property]; ok && j.Ruling != ruling {
			t.Errorf("%s: %s by %s, want %s", j.Property, j.Ruling, j.By, ruling)
		}
	}
}
