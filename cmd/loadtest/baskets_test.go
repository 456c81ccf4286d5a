package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/survey"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/testserver"
)

// TestBaskets runs every way of taking several items under every scenario of baskets.
func TestBaskets(t *testing.T) { runsAsPredicted(t, "baskets", nil) }

// TestReservations runs every way of reserving under every scenario of reservations. A cell says what it rests on.
func TestReservations(t *testing.T) {
	runsAsPredicted(t, "reservations", map[string][]string{
		"reservation-overwritten:failure-after-confirmation": {"1 payments were kept", "payment 1 of A: confirmed", "the provider says that A's payment failed"},
		"reservation:confirmation-meets-expiry":              {"Every order was paid once", "payment 1 of C: confirmed", "payment 1 of A: the money must be returned"},
	})
}

// runsAsPredicted runs the cells of a group, and wants that some, drawn of what was saved, say something.
func runsAsPredicted(t *testing.T, group string, wants map[string][]string) {
	oneMatrix(t)
	testserver.NeedsServers(t)
	saved := filepath.Join(t.TempDir(), "run.json")
	command := func(args ...string) string {
		var out, errs bytes.Buffer
		if code := run(t.Context(), args, &out, &errs); code != exitExpected {
			t.Fatalf("%s: exit code %d\n%s%s", args, code, out.String(), errs.String())
		}
		return out.String()
	}
	command("run", group, "--out", saved)
	for cell, wants := range wants {
		drawn := command("run", cell, "--draw", "--from", saved)
		for _, want := range wants {
			if !strings.Contains(drawn, want) {
				t.Errorf("no %q in:\n%s", want, drawn)
			}
		}
	}
}

// TestSchedulesOfReservations: each way that breaks has a schedule that shows it, and the shop's own has none among
// all with one switch.
func TestSchedulesOfReservations(t *testing.T) {
	t.Parallel()
	testserver.NeedsServers(t)
	room := openClassroom(t)
	expired := "B.insert B.select B.insert2 B.insert3 B.insert4 B.update B.select2 B.insert5 B.commit C.select C.select2 C.select3 C.select4 C.update C.update2 C.update3 C.insert C.commit"
	for _, tt := range []struct {
		way, order string
		cause      verdict.Cause
	}{
		{"reservation", expired, ""}, {"reservation-unchecked", expired, verdict.Revived}, {"reservation-revived", expired, verdict.Revived},
		{"reservation-rows", "B.select", verdict.Uncounted}, {"reservation-overwritten", "", verdict.Overwritten},
	} {
		var out, errs bytes.Buffer
		var r schedule.Record
		args := append([]string{"step", tt.way, "--as", "reservations", "--lease", "1s", "--out", "-"}, strings.Fields(tt.order)...)
		if code := room.run(t.Context(), streams{args: args, out: &out, err: &errs}); code != exitExpected {
			t.Fatalf("%s: exit code %d\n%s%s", tt.way, code, out.String(), errs.String())
		}
		if err := json.Unmarshal(out.Bytes(), &r); err != nil || r.Outcome.Cause != tt.cause || r.Outcome.Bad() != (tt.cause != "") {
			t.Errorf("%s: %s by %q, %v, want %q", tt.way, r.Outcome.Verdict, r.Outcome.Cause, err, tt.cause)
		}
	}
	var out, errs bytes.Buffer
	args := []string{"explore", "reservation", "--as", "reservations", "--lease", "1s", "--out", "-"}
	if code := room.run(t.Context(), streams{args: args, out: &out, err: &errs}); code != exitExpected {
		t.Fatalf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
	var results []survey.Result
	if err := json.Unmarshal(out.Bytes(), &results); err != nil || len(results) != 1 || results[0].Found.Runs < 100 || results[0].Found.Bad > 0 {
		t.Errorf("%+v, %v", results, err)
	}
}

// TestACrossedCellIsExplained wants the story of the cell, and the circle drawn.
func TestACrossedCellIsExplained(t *testing.T) {
	t.Parallel()
	testserver.NeedsServers(t)
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"run", "locks-parallel:crossed", "--draw"}, &out, &errs); code != exitExpected {
		t.Fatalf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
	for _, want := range []string{"B: busy", "a circle: A ──waits for──▶ item 2 ──held by──▶ B ──waits for──▶ item 1 ──held by──▶ A"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}

// TestCrossedSchedules: the exploration of an unsorted way finds the circle at once, and that of a sorted one
// finds nothing. A circle of rows is a deadlock, which MySQL ends.
func TestCrossedSchedules(t *testing.T) {
	t.Parallel()
	testserver.NeedsServers(t)
	shortest := map[string]string{ // by the way
		"locks-unsorted": "A.set B.set", "locks-parallel": "A.set B.set", "locks-sorted": "", "rows-unsorted": "", "rows-sorted": "",
	}
	var out, errs bytes.Buffer
	args := append([]string{"explore", "--customers", "2", "--out", "-"}, slices.Collect(maps.Keys(shortest))...)
	if code := run(t.Context(), args, &out, &errs); code != exitExpected {
		t.Fatalf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
	var results []survey.Result
	if err := json.Unmarshal(out.Bytes(), &results); err != nil || len(results) != len(shortest) {
		t.Fatalf("%d results, %v", len(results), err)
	}
	for _, r := range results {
		way, found, shortest := r.Strategy, r.Found, shortest[r.Strategy]
		const most = 60 // runs; 20 of each of these locks were needed
		if ended := found.Deadlocks > 0; ended != (way == "rows-unsorted") {
			t.Errorf("%s: MySQL ended a transaction in %d of %d runs", way, found.Deadlocks, found.Runs)
		}
		switch {
		case found.Runs == 0 || found.Runs > most:
			t.Errorf("%s: %d runs, want at most %d", way, found.Runs, most)
		case shortest == "" && found.Bad > 0, shortest != "" && len(found.Shortest) != 1:
			t.Errorf("%s: %d bad runs: %v", way, found.Bad, found.Causes())
		case shortest != "" && (found.Shortest[0].Schedule.String() != shortest || found.Shortest[0].Outcome.Cause != verdict.CrossedLocks):
			t.Errorf("%s: %s by %s, want %s", way, found.Shortest[0].Schedule, found.Shortest[0].Outcome.Cause, shortest)
		}
	}
}
