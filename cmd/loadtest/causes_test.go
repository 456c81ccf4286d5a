package main

import (
	"flag"
	"fmt"
	"slices"
	"testing"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/strategy/ladder"
)

// causes are what breaks a lock on one server without the property that the scenario attacks.
var causes = map[string]verdict.Cause{
	"crash": verdict.NoExpiry, "crash-acquiring": verdict.DiedTaking, "overrun": verdict.Overrun,
	"late-release": verdict.ForeignDelete, "split-release": verdict.SplitRelease, "nested": verdict.SelfDeadlock,
	"clock-skew": verdict.ClockSkew, "partition": verdict.Unnoticed, "failover": verdict.Forgotten,
	"redis-restart": verdict.Forgotten, "eviction": verdict.Evicted, "pause": verdict.LateWrite,
	"page-view": verdict.StaleCache, "commit-unanswered": verdict.UnknownCommit,
}

// copied are the causes of the most copied mistakes, whatever the scenario does.
var copied = map[string]verdict.Cause{
	"lock-in-transaction": verdict.LateCommit, "snapshot-before-lock": verdict.OldSnapshot, "ledger": verdict.WriteSkew,
	"wrong-key-customer": verdict.WrongKey, "wrong-key-shop": verdict.WrongKey,
}

// causeOf returns the cause that the explanation of an expected failure must have.
func causeOf(c trial.Result) verdict.Cause {
	s, err := ladder.ByName(c.Strategy)
	switch {
	case err != nil:
		return ""
	case copied[c.Strategy] != "" && c.Verdict == verdict.Oversold:
		return copied[c.Strategy]
	case c.Verdict == verdict.Oversold && !s.Declared.Meets(declared.Exclusive) && s.Declared.Guard == "nothing":
		return verdict.NoLock
	case c.Verdict == verdict.Oversold && !s.Declared.Meets(declared.Exclusive):
		return verdict.OneProcess
	case c.Verdict == verdict.Stuck && c.Scenario == "partition":
		return verdict.LostRelease
	case c.Verdict == verdict.Left && (s.Declared.Background || s.Declared.Counts()):
		return verdict.Unreturned
	case c.Verdict == verdict.Lied:
		return verdict.NoOrder
	case s.Declared.Lease.Kept == declared.LeaseInMySQL && c.Scenario == "partition":
		return verdict.Overrun // it does not renew, and needs no Redis
	default:
		return causes[c.Scenario]
	}
}

// checkCauses compares the explanation of each cell with what was done to it, and the drawing of an
// oversell with its orders.
func checkCauses(t *testing.T, path string) {
	t.Helper()
	r, err := report.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	onOneServer := scenario.Of(trial.OneServer)
	for _, c := range r.Cells {
		if !slices.ContainsFunc(onOneServer, func(s trial.Scenario) bool { return s.Name == c.Scenario }) {
			continue
		}
		x := c.Explanation
		s, err := ladder.ByName(c.Strategy)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		elsewhere := s.Declared.State.Remaining != "" || s.Declared.AnswersFirst // the orders do not say what the row had
		switch {
		case c.Verdict == verdict.Invalid || c.Verdict == verdict.Skipped || c.Verdict == verdict.Inapplicable || c.Surprise():
			continue
		case x == nil:
			t.Errorf("%s under %s: %s, and there is no explanation", c.Strategy, c.Scenario, c.Verdict)
			continue
		case c.Verdict != verdict.Held && x.Cause != causeOf(c):
			t.Errorf("%s under %s: %s, explained with %s, want %s: %s", c.Strategy, c.Scenario, c.Verdict, x.Cause, causeOf(c), words.English.Say(x.Why...))
		}
		if elsewhere || c.Verdict != verdict.Oversold || len(x.Rows) < 2 {
			continue
		}
		first, late := x.Rows[0], x.Rows[1]
		drawn := func(row explain.Row) bool {
			return slices.ContainsFunc(x.Steps, func(s explain.Step) bool {
				return words.English.Say(s.Text) == fmt.Sprintf("wrote %d, order %d", row.Written, row.ID)
			})
		}
		if first.Read != late.Read || first.Nth >= late.Nth || !drawn(first) || !drawn(late) {
			t.Errorf("%s under %s: the orders %+v and %+v are not drawn as they are", c.Strategy, c.Scenario, first, late)
		}
	}
}

var results = flag.String("results", "", "check what is said of the cells of these saved results, too")

// TestCausesOfSavedResults checks a whole matrix that was run before:
//
//	loadtest run all --out FILE # or everything, of which it checks the cells on one server
//	go test ./cmd/loadtest -run TestCausesOfSavedResults -results FILE
//
// Without a file it checks those of package report's own tests.
func TestCausesOfSavedResults(t *testing.T) {
	path := *results
	if path == "" {
		path = "../../internal/lab/report/testdata/saved.json"
	}
	checkCauses(t, path)
}
