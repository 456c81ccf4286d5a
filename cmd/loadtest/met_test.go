package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"stocklock/internal/lab/overlaytest"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
)

// refusing makes a shop refuse sales by version. The third sale of twelve units is to be lost with the server. Sales of two
// units are to make the version the same again.
const refusing = `
		if of.Name == "optimistic" && wanted.Quantity == 2 {
			return stock.Order{}, stock.ErrConflict
		}
		if item, err := l.deps.Store.Read(ctx, wanted.ItemID); of.Name == "optimistic" && err == nil && item.Stock == 10 && once.CompareAndSwap(false, true) {
			return stock.Order{}, strategy.ErrBusy
		}
`

// TestAFaultThatDoesNotMeetIsNeverGreen: the cells of a shop that ignores faults are invalid, whatever
// they sold. Only those are judged that need no fault, or that do not apply.
func TestAFaultThatDoesNotMeetIsNeverGreen(t *testing.T) {
	const root, lab, sale = "../..", "internal/shop/labmode/labmode.go", "		order, err := sell("
	code := overlaytest.Changed(t, root, lab, "inject := p == asked.Fault.Point && ", "inject := false && p == asked.Fault.Point && ")
	code = strings.Replace(code, sale, refusing+sale, 1) + "\nvar once atomic.Bool\n"
	shop := overlaytest.Shop(t, root, map[string]string{lab: code})
	saved := filepath.Join(t.TempDir(), "results.json")
	var out, errs bytes.Buffer
	exit := run(t.Context(), []string{"run", "--shop-binary", shop, "conditional:all", "--out", saved}, &out, &errs)
	if exit != exitSurprised {
		t.Errorf("exit code %d, want %d\n%s%s", exit, exitSurprised, out.String(), errs.String())
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
	run(t.Context(), []string{"run", "--shop-binary", shop, "optimistic:single-failover,async-rewind", "--out", saved}, &out, &errs)
	lost, err := report.Read(saved)
	if err != nil || len(lost.Cells) != 2 {
		t.Fatalf("%v\n%s%s", err, out.String(), errs.String())
	}
	for _, c := range lost.Cells {
		if c.Verdict != verdict.Invalid || !strings.Contains(c.Problem, trial.ErrNotSeen.Error()) {
			t.Errorf("%s: no sale was lost, or made the version the same again: %s (%s)", c.Name(), c.Verdict, c.Problem)
		}
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
