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
	oneMatrix(t)
	const root, lab, sale = "../..", "internal/shop/labmode/labmode.go", "		order, err := sell("
	code := overlaytest.Changed(t, root, lab, "inject := p == asked.Fault.Point && ", "inject := false && p == asked.Fault.Point && ")
	code = strings.Replace(code, sale, refusing+sale, 1) + "\nvar once atomic.Bool\n"
	shop := overlaytest.Shop(t, root, map[string]string{lab: code})
	saved := filepath.Join(t.TempDir(), "results.json")
	var out, errs bytes.Buffer
	args := strings.Fields("run conditional:all lock-then-for-update:contention optimistic:single-failover,async-rewind --shop-binary")
	if exit := run(t.Context(), append(args, shop, "--out", saved), &out, &errs); exit != exitSurprised {
		t.Errorf("exit code %d, want %d\n%s%s", exit, exitSurprised, out.String(), errs.String())
	}
	r, err := report.Read(saved)
	if err != nil {
		t.Fatal(err)
	}
	strategies := map[string]int{}
	for _, c := range r.Cells {
		strategies[c.Strategy]++
		sc, err := scenario.ByName(c.Scenario)
		if err != nil {
			t.Fatal(err)
		}
		want := verdict.Invalid
		switch {
		case c.Strategy == "lock-then-for-update":
			if c.Unseen != trial.BeforeCommit {
				t.Errorf("%s: nobody was held before the commit, and unseen is %q", c.Name(), c.Unseen)
			}
		case c.Strategy == "optimistic":
			if !strings.Contains(c.Problem, trial.ErrNotSeen.Error()) {
				t.Errorf("%s: no sale was lost, or made the version the same again: %s", c.Name(), c.Problem)
			}
		case c.Expected == verdict.Inapplicable:
			want = verdict.Inapplicable
		case sc.Crowd.At == "":
			want = verdict.Held
		}
		if c.Verdict != want {
			t.Errorf("%s: %s (%s), want %s", c.Name(), c.Verdict, c.Problem, want)
		}
	}
	if strategies["conditional"] < 10 || strategies["lock-then-for-update"] != 1 || strategies["optimistic"] != 2 {
		t.Errorf("cells of each strategy: %v", strategies)
	}
}
