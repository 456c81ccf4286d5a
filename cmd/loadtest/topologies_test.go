package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/testserver"
)

// TestTopologies: each property and the fact of the topology decide in both directions, and each cell that lied or
// oversold names its cause, which the records of the servers show. `run topologies` runs all strategies.
func TestTopologies(t *testing.T) {
	oneMatrix(t)
	testserver.NeedsServers(t)
	// Those that take longest come first.
	const telling = "none,reentrant,redis-async,redis-stream,reservation-unchecked,fenced,conditional"
	saved := filepath.Join(t.TempDir(), "results.json")
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"run", "conditional:async-errant,semi-sync-errant", telling + ":topologies", "--out", saved}, &out, &errs); code != exitExpected {
		t.Fatalf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
	content, err := os.ReadFile(saved)
	if err != nil {
		t.Fatal(err)
	}
	var r report.Report
	if err := json.Unmarshal(content, &r); err != nil {
		t.Fatal(err)
	}
	said := map[string]bool{}
	for _, c := range r.Cells {
		if c.Promised < c.Sold || c.Verdict == verdict.Lied && c.Promised == c.Sold {
			t.Errorf("%s: %s, %d promised, and orders for %d", c.Name(), c.Verdict, c.Promised, c.Sold)
		}
		if c.Strategy == "redis-stream" && c.Promised > c.InitialStock {
			t.Errorf("%s promises %d units of %d: its counter forgets nothing", c.Name(), c.Promised, c.InitialStock)
		}
		if c.Verdict != verdict.Lied && c.Verdict != verdict.Oversold {
			continue
		}
		if c.Explanation == nil || !c.Explanation.Known() {
			t.Errorf("%s: %s without a cause", c.Name(), c.Verdict)
			continue
		}
		for _, text := range c.Explanation.Why {
			said[text.Key] = true
		}
		for _, wrong := range contradictions(t, c) {
			t.Errorf("%s: %s: %s\n%s\n%+v", c.Name(), c.Explanation.Cause, wrong, words.English.Say(c.Explanation.Why...), c.Servers)
		}
		if len(c.Explanation.Columns) != len(c.Servers) || len(c.Explanation.Steps) == 0 || c.Explanation.Moment == nil {
			t.Errorf("%s is not drawn", c.Name())
		}
	}
	for _, phrase := range []string{"db-not-copied", "db-was-alone", "db-sold-at-old", "db-answered-first", "db-read-behind", "db-read-replaced", "db-read-lost", "db-held-lost"} {
		if !said[phrase] { // all of these are of pairs, which start wherever there is a MySQL
			t.Errorf("no cell is explained by %s", phrase)
		}
	}
}

// factsOf are the facts of a text that was read.
func factsOf(t *testing.T, text words.Text) (f explain.Facts) {
	t.Helper()
	content, err := json.Marshal(text)
	if err := errors.Join(err, json.Unmarshal(content, &f)); err != nil && text.Key != "" {
		t.Error(err)
	}
	return f
}

// contradictions are what the servers' records say against the cause of a cell.
func contradictions(t *testing.T, c trial.Result) (wrong []string) {
	check := func(holds bool, otherwise string) {
		if !holds {
			wrong = append(wrong, otherwise)
		}
	}
	for _, text := range c.Explanation.Why {
		f := factsOf(t, text)
		on := func(name string) explain.DatabaseServer {
			for _, s := range c.Servers {
				if s.Name == name {
					return s
				}
			}
			return explain.DatabaseServer{}
		}
		has := func(s explain.DatabaseServer, gtid, request string) bool {
			return slices.ContainsFunc(s.Transactions, func(t explain.OrderTransaction) bool {
				return (gtid == "" || t.GTID == gtid) && strings.HasSuffix(t.Request, "-"+strings.TrimPrefix(request, "#"))
			})
		}
		switch text.Key {
		case "db-not-copied", "db-sold-at-old":
			check(has(on(f.Server), f.GTID, f.Holder.Request), "the binlog of "+f.Server+" has no such transaction")
			check(!has(on(f.OtherServer), "", f.Holder.Request), "the binlog of "+f.OtherServer+" has the order")
		case "db-was-alone":
			check(on(f.Server).Alone, f.Server+" waited for its replica")
		case "db-answered-first":
			for _, s := range c.Servers {
				check(s.Waiting > 0 || !has(s, "", f.Holder.Request), s.Name+" has the order")
			}
		case "db-read-behind", "db-read-replaced", "db-read-lost":
			check(on(f.Server).Read(), f.Server+" has logged no SELECT")
			for _, s := range c.Servers {
				check(s.Name == f.Server || !s.Read(), s.Name+" has logged a SELECT, too")
			}
			check(text.Key == "db-read-lost" || on(f.Server).Orders < on(f.OtherServer).Orders, f.Server+" was not behind")
		case "db-wrote-on-that", "db-ordered-all-the-same":
			check(slices.ContainsFunc(c.Explanation.Steps, func(s explain.Step) bool {
				return factsOf(t, s.Text).Order == f.Order && c.Servers[s.Column].Name == f.Server
			}), "the order is not drawn on "+f.Server)
		case "db-held-lost":
			check(len(on(f.Server).Statements) > 0, f.Server+" has logged nothing of the sale")
			check(len(on(f.OtherServer).Statements) == 0, f.OtherServer+" has logged statements of the sale, too")
		}
	}
	alone := slices.ContainsFunc(c.Servers, func(s explain.DatabaseServer) bool { return s.Alone })
	check(c.Explanation.Cause != verdict.NotCopied || !alone, "the primary went on alone")
	return wrong
}

func TestMistakesOfBasketsAndTopologies(t *testing.T) {
	for flags, want := range map[string]string{
		"run pair":                             "no strategy, scenario or group",
		"run none:late":                        "or a group: all, baskets, reservations, topologies, single, async",
		"run mutex:semi-sync-silent":           "is no cell of mutex",
		"run lock:async":                       "no strategy",
		"run async --redis redis://x":          "starts all of them itself",
		"run mutex:semi-sync-silent --draw":    "is no cell of mutex",
		"run saga:all":                         "no cell is of these",
		"run async --mysql-set binlog":         "--mysql-set is set by the scenarios",
		"run baskets --parallel 2":             "--parallel is set by the scenarios",
		"run locks-parallel:crossed --shops 2": "--shops is set by the scenarios",
	} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), strings.Fields(flags), &out, &errs); code != exitUsage || !strings.Contains(errs.String(), want) {
			t.Errorf("%s: exit code %d, want %d\n%s", flags, code, exitUsage, errs.String())
		}
	}
}
