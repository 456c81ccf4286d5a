//go:build explore

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stocklock/internal/lab/catalog/catalogtest"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/strategy/ladder"
)

// sameFault pairs the scenarios of the matrix with the parts of a try that do the same.
var sameFault = []struct{ scenario, part string }{
	{"contention", "every order of two sales:"},
	{"pause", "a process stopped while its lease ends"},
	{"crash", "kill -9 of a process"},
	{"commit-unanswered", "a connection cut before the answer"},
	{"redis-restart", "Redis is killed and starts again"},
	{"failover", "Redis dies, and a replica"},
	{"eviction", "Redis evicts"},
	{"overrun", "every order of two sales, while the lease of one ends"},
}

// onlyInTheMatrix are the cells that break by what a try does not do.
var onlyInTheMatrix = map[string]string{
	"retry-without-key:commit-unanswered": "the customer tries again, which a customer of a try never does",
}

// TestStrategiesAsServices: no strategy that the matrix breaks is held by the part of the same fault, where it is
// described as any other service. TRY_STRATEGIES has names of some. With -v, each cell is told.
func TestStrategiesAsServices(t *testing.T) {
	shop := catalogtest.Shop(t)
	text, err := os.ReadFile(examples + "/stocklock/none.yaml")
	if err != nil {
		t.Fatal(err)
	}
	asked := strings.Fields(os.Getenv("TRY_STRATEGIES"))
	for _, made := range ladder.All() {
		of := made.Describe()
		if of.NeedsQuorum || of.NeedsEtcd || of.OnlyBaskets || len(of.NeedsCommand) > 0 || len(asked) > 0 && !slices.Contains(asked, of.Name) {
			continue
		}
		t.Run(of.Name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "service.yaml")
			ofItem := func(statement string) string { return strings.ReplaceAll(statement, "?", "{item}") }
			setup, left := "'item', {stock})", "SELECT stock"
			for _, statement := range of.State.Setup { // of units that are sold from other rows
				setup += "; " + ofItem(statement)
			}
			if of.State.Remaining != "" {
				left += " + (" + ofItem(of.State.Remaining) + ")"
			}
			described := strings.NewReplacer("../../bin/shop", shop.Program, "SHOP_STRATEGY: none", "SHOP_STRATEGY: "+of.Name+"\n    SHOP_LEASE: 1s",
				"'item', {stock})", setup, "SELECT stock", left).Replace(string(text))
			if err := os.WriteFile(path, []byte(described), 0o600); err != nil {
				t.Fatal(err)
			}
			var out, errs bytes.Buffer
			code := run(t.Context(), []string{"try", path, "--only", "explore,faults", "--for", "4m", "--fast", "--out", "-"}, &out, &errs)
			var tried report.Tried
			if err := json.Unmarshal(out.Bytes(), &tried); err != nil {
				t.Logf("not decided: exit code %d: %s", code, &errs)
				return
			}
			for _, pair := range sameFault {
				sc, err := scenario.ByName(pair.scenario)
				if err != nil {
					t.Fatal(err)
				}
				expected := sc.Expected(of)
				// What nothing keeps out oversells under every load. One sale beside another, with a fault in it, need not.
				byFault := pair.scenario == "contention" || expected.Because.Property != declared.Exclusive.String()
				for _, p := range tried.Parts {
					if !strings.HasPrefix(p.Reason, pair.part) {
						continue
					}
					t.Logf("%-18s matrix %-14s try %-14s %s", pair.scenario, expected.Verdict, p.Verdict, p.Reason)
					if verdict.Of(expected.Verdict).Bad && byFault && p.Verdict == verdict.Held && onlyInTheMatrix[of.Name+":"+pair.scenario] == "" {
						t.Errorf("%s: the matrix says %s, and the same fault is held", pair.scenario, expected.Verdict)
					}
				}
			}
		})
	}
}

// TestAFastTryGoesOn where its first finding is bad only with a lease that is ended early.
func TestAFastTryGoesOn(t *testing.T) {
	t.Parallel()
	needs(t, "python")
	if code, said := tryOf(t, examples+"/python/lease.yaml", "--only", "explore", "--fast"); code != exitSurprised || !strings.Contains(said, "explore:    oversold: every order of two sales, while the lease of one ends") {
		t.Errorf("exit code %d, said:\n%s", code, said)
	}
}
