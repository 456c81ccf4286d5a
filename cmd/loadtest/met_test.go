package main

import (
	"bytes"
	"path/filepath"
	"testing"

	"stocklock/internal/lab/overlaytest"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
)

// TestAFaultThatDoesNotMeetIsNeverGreen: the cells of a shop that ignores faults are invalid, whatever
// they sold. Only those are judged that need no fault, or that do not apply.
func TestAFaultThatDoesNotMeetIsNeverGreen(t *testing.T) {
	const root, file = "../..", "internal/shop/labmode/labmode.go"
	shop := overlaytest.Shop(t, root, map[string]string{file: overlaytest.Changed(t, root, file,
		"inject := p == asked.Fault.Point && ", "inject := false && p == asked.Fault.Point && ")})
	saved := filepath.Join(t.TempDir(), "results.json")
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"run", "--shop-binary", shop, "conditional:all", "--out", saved}, &out, &errs)
	if code != exitSurprised {
		t.Errorf("exit code %d, want %d\n%s%s", code, exitSurprised, out.String(), errs.String())
	}
	r, err := report.Read(saved)
	if err != nil {
		t.Fatal(err)
	}
	out.Reset()
	run(t.Context(), []string{"run", "--shop-binary", shop, "lock-then-for-update:contention", "--out", saved}, &out, &errs)
	late, err := report.Read(saved)
	if err != nil || len(late.Cells) != 1 || late.Cells[0].Verdict != verdict.Invalid || late.Cells[0].Unseen != trial.BeforeCommit {
		t.Errorf("nobody was held before the commit, %v:\n%s", err, out.String())
	}
	for _, c := range r.Cells {
		sc, err := scenario.ByName(c.Scenario)
		if err != nil {
			t.Fatal(err)
		}
		want := verdict.Invalid
		switch {
		case c.Expected == verdict.Inapplicable:
			want = verdict.Inapplicable
		case sc.Crowd.At == "":
			want = verdict.Held
		}
		if c.Verdict != want {
			t.Errorf("%s: %s (%s), want %s", c.Name(), c.Verdict, c.Problem, want)
		}
	}
}
