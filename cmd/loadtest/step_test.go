package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"stocklock/internal/lab/rig"
	"stocklock/internal/testserver"
)

func TestSchedulesThatCannotBeAreOneLine(t *testing.T) {
	needsShop(t)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"step", "none", "D.select"}, `there is no customer "D": want A to C`},
		{[]string{"step", "none", "A.select sleep"}, `"sleep" is neither a step, such as A.set, nor an event`},
		{[]string{"step", "none", "pause"}, "pause hits one customer: want pause:A"},
		{[]string{"step", "none", "--customers", "1"}, "--customers is 1: want 2 or 3"},
		{[]string{"step", "none", "A.select C.select", "--customers", "2"}, "the schedule needs 3 customers, and --customers is 2"},
		{[]string{"step", "none", "A.select", "--transcript", "--draw"}, "want --transcript or --draw"},
		{[]string{"explore", "none", "--events", "sleep"}, `--events: no event "sleep": want some of wait`},
		{[]string{"explore", "none", "--events", "sleep"}, "or all, or none\n"},
		{[]string{"explore", "none", "--customers", "1"}, "--customers is 1: want 2 to 3"},
		{[]string{"explore", "none", "--customers", "4"}, "--customers is 4: want 2 to 3"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), tt.args, &stdout, &stderr)
		if code != exitUsage || !strings.Contains(stderr.String(), tt.want) || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%v: exit code %d, %q, want %d and one line with %q", tt.args, code, stderr.String(), exitUsage, tt.want)
		}
	}
}

// TestWhoLeavesHearsWhatIsNotWritten.
func TestWhoLeavesHearsWhatIsNotWritten(t *testing.T) {
	var stderr bytes.Buffer
	(&stepCommand{}).unwritten(streams{err: &stderr})
	(&stepCommand{outputs: outputs{Out: []string{"s.json"}}}).unwritten(streams{err: &stderr})
	if want := "s.json not written: e plays to the end and writes it\n"; stderr.String() != want {
		t.Errorf("said %q, want %q", stderr.String(), want)
	}
}

// TestAnOrderThatCannotBe: what a schedule asks for is known only when it is played.
func TestAnOrderThatCannotBe(t *testing.T) {
	testserver.NeedsServers(t)
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"step", "none", "A.select", "A.release"}, &stdout, &stderr)
	if want := "loadtest: A.release cannot be here: A's next step is A.update\n"; code != exitUsage || stderr.String() != want {
		t.Errorf("exit code %d, %q, want %d and %q", code, stderr.String(), exitUsage, want)
	}
}

// TestAShopThatCannotBePlayed: a strategy that the shop does not have, and a shop without the lab.
func TestAShopThatCannotBePlayed(t *testing.T) {
	production := filepath.Join(t.TempDir(), "shop")
	if out, err := rig.GoCommand(t.Context(), "../..", "build", "-tags=nomsgpack", "-o", production, "./cmd/shop").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for args, want := range map[string]string{
		"step magic":                                                            `no strategy "magic": want one of none, mutex`,
		"step magi":                                                             `batched, rows-unsorted, rows-sorted`,
		"explore --as baskets locks-sorted none":                                "none sells one item at a time",
		"run locks-sorted:contention":                                           "locks-sorted only sells several items at once: see loadtest list baskets",
		"run none:crossed --draw":                                               "none:crossed: no strategy",
		"explore --as reservations none":                                        "none does not reserve",
		"step conditional --as reservations":                                    "conditional does not reserve",
		"explore --as reservations reservation --events wait":                   "reservation sells to two customers and a sweep",
		"run reservation-rows:pause":                                            "reservation-rows only reserves: see loadtest list reservations",
		"run baskets --out results.gob":                                         "measure no requests",
		"explore magic":                                                         `no strategy "magic": want one of none, mutex`,
		"explore magic --judge":                                                 `no strategy "magic": want one of none, mutex`,
		"step conditional --shop-binary " + production:                          "was built without the lab: build it with go build -tags lab ./cmd/shop",
		"explore conditional --judge --shop-binary " + production:               "was built without the lab",
		"run conditional --shop-binary " + production:                           "was built without the lab",
		"list strategies --shop-binary " + production:                           "was built without the lab",
		"explore conditional --shop-binary " + filepath.Dir(production) + "/no": "no such file",
	} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), strings.Fields(args), &out, &errs); code != exitUsage || !strings.Contains(errs.String(), want) || strings.Count(errs.String(), "\n") != 1 {
			t.Errorf("loadtest %s: exit code %d, %q, want %d and one line with %q", args, code, errs.String(), exitUsage, want)
		}
	}
}
