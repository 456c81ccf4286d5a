package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/explore"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/schedule"
	"stocklock/internal/lab/survey"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/strategy/declared"
)

func written(t *testing.T, name string, what any) string {
	t.Helper()
	text, err := json.Marshal(what)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func result(of, under string, found, expected verdict.Kind, agreed, runs int) trial.Result {
	r := trial.Result{Strategy: of, Scenario: under, Verdict: found, Expected: expected, Agreed: agreed, Runs: runs}
	if found == verdict.Oversold {
		r.Oversold = 7
		r.Explanation = &explain.Explanation{Why: []words.Text{{Words: "The lease of " + of + " was over."}, {Words: "Both wrote."}}}
	}
	return r
}

func resultOf(command string, cells ...trial.Result) report.Report {
	r := report.Report{Version: report.Version, Environment: report.Environment{Time: "2026-11-22T08:00:00Z", Command: command, Redis: "Redis 7"}, Cells: cells}
	for _, name := range []string{"redsync", "etcd", "reentrant"} {
		r.Strategies = append(r.Strategies, declared.Strategy{Name: name, Doc: name + "'s lock"})
	}
	return r
}

// first is a run of all cells: one fails as declared, one is skipped, one is a surprise.
func first() report.Report {
	skipped := result("etcd", "failover", verdict.Skipped, verdict.Held, 0, 1)
	skipped.Problem = "its lock is elsewhere"
	return resultOf("loadtest run --all",
		result("redsync", "overrun", verdict.Oversold, verdict.Oversold, 1, 1),
		result("redsync", "contention", verdict.Held, verdict.Held, 1, 1),
		result("redsync", "crash", verdict.Held, verdict.Held, 1, 1),
		skipped,
		result("etcd", "crash", verdict.Oversold, verdict.Held, 0, 1),
		result("reentrant", "pause", verdict.Oversold, verdict.Oversold, 1, 1),
		result("etcd", "partition", verdict.Held, verdict.Oversold, 0, 1),
		result("etcd", "pause", verdict.Oversold, verdict.Oversold, 1, 1))
}

func said(t *testing.T, o options) string {
	t.Helper()
	var out bytes.Buffer
	if err := o.run(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestWhatThePageSays(t *testing.T) {
	again := resultOf("loadtest run --again", result("redsync", "overrun", verdict.Oversold, verdict.Oversold, 3, 3),
		result("etcd", "crash", verdict.Held, verdict.Held, 3, 3), result("etcd", "partition", verdict.Oversold, verdict.Oversold, 3, 3),
		result("etcd", "pause", verdict.Held, verdict.Oversold, 2, 3))
	sales := resultOf("loadtest run --sales", result("redsync", "contention", verdict.Held, verdict.Held, 1, 1))
	sales.Cells[0].SalesPerSecond, sales.Cells[0].Latency.P99 = 520.4, 309
	folder := filepath.Join(t.TempDir(), "peers")
	if err := os.WriteFile(folder+".txt", []byte("commit: abc\nload: 0.1 to 1.9\ncommand: bin/bench --locks mutex,etcd\ngoos: linux\ncores: 2\nredis: 7\netcd: 3.4\n"+
		"BenchmarkHold/shape=8x1/pause=1ms/section=redis/lock=mutex 9 7800 holds/s 4e-05 trip-sec 1 of-mutex\n"+
		"BenchmarkHold/shape=8x1/pause=1ms/section=redis/lock=etcd 9 1950 holds/s 0.25 of-mutex 0.000384 over-sec 6.02 requests/op\n"+
		"BenchmarkHold/shape=pairs/section=empty/lock=etcd 9 1e-6 sec/op\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	shortest, err := schedule.Parse("A.acquire pause:A")
	if err != nil {
		t.Fatal(err)
	}
	explored := []survey.Result{
		{Strategy: "etcd", Event: schedule.Forget, Skipped: words.AsItStands("it keeps them")},
		{Strategy: "etcd", Event: schedule.Pause, Found: explore.Found{Runs: 60, Bad: 20, Shortest: []schedule.Record{
			{Schedule: shortest, Outcome: schedule.Outcome{Cause: verdict.LateWrite}}}}},
	}
	said(t, options{Cells: written(t, "cells", first()), Again: written(t, "again", again), Sales: written(t, "sales", sales),
		Explored: []string{written(t, "forgotten", explored[:1]), written(t, "paused", explored[1:])}, Keep: folder})
	text := said(t, options{From: folder})
	for _, want := range []string{
		"| when | 2026-11-22T08:00:00Z, at commit abc; load average 0.1 to 1.9 |\n",
		"| command | `loadtest run --all` |\n| command | `loadtest run --again` |",
		// The runs with other seeds count.
		"It did not hold under [overrun](mistakes/leases.md#overrun) (**oversold 7** in 3 of 3 runs).",
		"+7 !!", "[crash](mistakes/leases.md#crash) (**oversold 7** in 1 of 4 runs)", // what three more runs do not show stays, and is marked
		"[partition](mistakes/leases.md#partition) (**oversold 7** in 3 of 4 runs)", // the first run held, and the others failed as declared
		"[pause](mistakes/leases.md#pause) (**oversold 7** in 3 of 4 runs)",         // the first run failed as declared, and one of the others held
		"- `failover` for etcd: its lock is elsewhere.",
		"- Its documentation on `overrun`: \"After this is successful", " What mends it: ExtendContext",
		"- Its documentation on `pause`: \"exclusion over a holder that is paused", // this repository's lock, in the same words
		"| redsync | 520 | 309 |",
		"`8x1/1ms`: 8 processes of 1 goroutine, with a pause of 1ms after each hold. The section takes 128 µs under the mutex, a round trip 40 µs.",
		"| etcd | 1950 | 0.25 | 384 | – | 6.02 |", "etcd 3.4,", "\n`bin/bench --locks mutex,etcd`\n\n## redsync\n",
		"| etcd | `forget` | – | – | not run: it keeps them |\n| etcd | `pause` | 60 | 20 | " + verdict.LateWrite.Doc() + ": `A.acquire pause:A` |",
		"`github.com/go-redsync/redsync/v4 v",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(text, "was over.") || strings.Contains(text, "shape=pairs") {
		t.Error("the page says how a cell came to its verdict, or has what the bench measured of one holder")
	}
	for _, row := range []struct {
		name  string
		cells map[string]string
	}{
		{"redsync", map[string]string{"contention": "held", "crash": "held", "overrun": "+7"}},
		{"etcd", map[string]string{"failover": "–", "crash": "+7 !!", "partition": "+7", "pause": "+7"}},
	} {
		for i, sc := range scenario.Of(trial.OneServer) {
			want, ok := row.cells[sc.Name]
			if got := tableCell(t, text, row.name, i); ok && got != want {
				t.Errorf("%s under %s is %q in the table, want %q", row.name, sc.Name, got, want)
			}
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

// TestNothingIsKeptOfAPart: a result that cannot be read leaves what was kept before.
func TestNothingIsKeptOfAPart(t *testing.T) {
	folder, cells := t.TempDir(), written(t, "cells", first())
	for range 10 { // in whatever order they are read
		if err := (options{Cells: cells, Again: cells, Sales: filepath.Join(folder, "missing"), Keep: folder}).run(io.Discard); err == nil {
			t.Fatal("it says nothing of the result that is missing")
		}
	}
	if kept, err := os.ReadDir(folder); err != nil || len(kept) > 0 {
		t.Errorf("kept: %v, %v", kept, err)
	}
}

// tableCell is the nth cell of a lock in the table of libraries and scenarios.
func tableCell(t *testing.T, text, of string, n int) string {
	t.Helper()
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "| ["+of+"](#"); ok {
			return strings.TrimSpace(strings.Split(rest, "|")[n+1])
		}
	}
	t.Fatalf("there is no row of %s", of)
	return ""
}

func TestListsForTheLoadTest(t *testing.T) {
	if got := said(t, options{Strategies: true}); !strings.HasPrefix(got, "redsync,redsync-five,") || !strings.HasSuffix(got, ",reentrant,fenced\n") {
		t.Errorf("compared: %s", got)
	}
	if got := said(t, options{Failing: true, Cells: written(t, "cells", first())}); got != "redsync:overrun etcd:crash reentrant:pause etcd:partition etcd:pause\n" {
		t.Errorf("failing: %s", got)
	}
}

// TestThePageIsWhatIsKept: byte for byte.
func TestThePageIsWhatIsKept(t *testing.T) {
	page, err := os.ReadFile("../../docs/peers.md")
	if err != nil {
		t.Fatal(err)
	}
	if said(t, options{From: "../results/peers"}) != string(page) {
		t.Error("docs/peers.md is stale: run make docs")
	}
}
