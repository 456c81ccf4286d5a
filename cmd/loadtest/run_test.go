package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stocklock/internal/flags"
	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/load"
	"stocklock/internal/lab/matrix"
	"stocklock/internal/lab/report"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/wholefile"
	"stocklock/internal/strategy/declared"
	"stocklock/internal/strategy/ladder"
	"stocklock/internal/testserver"
)

func TestWhatCannotBeRunIsOneLineAndExitCode2(t *testing.T) {
	needsShop(t)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	for _, tt := range []struct {
		args string
		want string
	}{
		{"run setxn:pause", `no strategy "setxn"`},
		{"run storm", "no strategy, scenario or group"},
		{"run --shops 0", "--shops is 0"},
		{"run --stock 0", "--stock is 0"},
		{"run --requests 0", "--requests is 0"},
		{"run --parallel 0", "--parallel is 0"},
		{"run --lease 0", "--lease (LOADTEST_LEASE) is 0s"},
		{"run --wait 0", "--wait (LOADTEST_WAIT) is 0s"},
		{"run --rate -1", "--rate is -1"},
		{"run --rate 5..10", "add a duration"},
		{"run --rate 10/1s --stock 100", "more demand than stock"},
		{"run --rate 100000/1h", "--rate 100000/1h sends 360000000 requests"},
		{"run none:pause none:contention --rate 100000/1h", "--rate 100000/1h sends 360000000 requests"},
		{"run none:pause none:contention --rate 10/1s --stock 30", "more demand than stock"},
		{"run --shops 65", "--shops is 65: want 1 to 64"},
		{"soak --recover-within 1ms", "--recover-within is 1ms: want 1s to 10m"},
		{"run --fail-if oversold", "compares nothing"},
		{"run --fail-if luck>3", `no metric "luck"`},
		{"run --out /dev/null/out.html", "cannot write"},
		{"run --out /dev/null/out.gob", "cannot write"},
		{"report /no/such/file.json", "no such file"},
		{"report run_test.go", "is no result"},
		{"report - -", "want - once"},
		{"run none --draw --from x.json --seed 2", "--seed is for a cell that is run"},
		{"run none:pause pause --draw --from x.json", "--from explains one cell"},
		{"run none:pause --from x.json", "--from explains one cell"},
		{"run none:pause --draw --from /no/such/file.json", "no such file"},
		{"run none:pause --draw --from /no/such/file.json --lang zh", "no such file"},
		{"run --expect-only --draw", "--draw is for cells that are run"},
		{"run --expect-only --runs 2", "--runs is for cells that are run"},
		{"run --expect-only --parallel 2", "--parallel is for cells that are run"},
		{"run --expect-only --fail-if oversold>0", "--fail-if is for cells that are run"},
		{"run --expect-only --format csv --out -", "--format is for cells that are run"},
		{"run --expect-only --out -", "--out is for cells that are run"},
		{"run --mysql u:p@tcp(127.0.0.1:1)/s --shop http://a:1=/trace --shop http://b:1", "1 of 2 shops have a trace"},
		{"run --mysql u:p@tcp(127.0.0.1:1)/s --shop http://a:1=", "the name of the shop's trace"},
		{"list --shop-binary /no/such/shop", "--shop-binary (LOADTEST_SHOP_BINARY): the shop cannot be started"},
		{"list --shop-binary /bin/true", "--shop-binary (LOADTEST_SHOP_BINARY): ask /bin/true for its strategies"},
		{"explore hope --judge", `no strategy "hope"`},
		{"step hope A.select", `no strategy "hope"`},
		{"explore hope", `no strategy "hope"`},
		{"run all,setxn:pause", `no strategy "setxn"`},
		{"run none:storm", `none:storm: no scenario "storm"`},
		{"run none:puase", `no scenario "puase": did you mean "pause"?`},
		{"run none:pause,none:crash", "no scenario \"none:crash\""},
		{"run --redis localhost", "--redis: want redis://host:6379"},
		{"run --workers 0", "--workers is 0"},
		{"run --stock 10 --requests 10", "more demand than stock"},
		{"run --lease 1ms", "--lease (LOADTEST_LEASE) is 1ms"},
		{"run --mysql nonsense", "--mysql"},
		{"run --mysql user:geheim@tcp(127.0.0.1:1)/stocklock", "cannot connect"},
		{"run --shop http://127.0.0.1:1", "--shop needs --mysql"},
		{"run --out /dev/null/out.json", "cannot write"},
		{"run --out " + temp, "want - or a name that ends in .csv, .html, .json, .md, .xml, .gob"},
		{"run --out out.md --out ./out.md", "--out names ./out.md twice"},
		{"run --out - --out -", "--out names - twice"},
		{"run --out a.gob --out b.gob", "one file with requests"},
		{"step none --out out.html", "want - or a name that ends in .json"},
		{"run --colour", "unknown flag"},
		{"runn none --draw", `unexpected argument runn, did you mean "run"?; see loadtest --help`},
		{"run --format csv", "--format csv is the form of --out -: want --out -, or --out FILE.csv"},
		{"report ../../internal/lab/report/testdata/saved.json --format md --out out.csv", "--format md is the form of --out -"},
		{"report before.json after.json --out d.md", "--out and --format write one result: want loadtest report after.json with them"},
		{"report before.json after.json --format md", "--out and --format write one result: want loadtest report after.json with them"},
		{"run --mysql u:p@tcp(127.0.0.1:1)/s --shop http://a:1 --shops 5", "--shops is for shops that loadtest starts: --shop (LOADTEST_SHOP) has given 1"},
		{"try --init --only probe", "--only is for a service that is tried, and --init tries none"},
		{"try --init --out x.json", "--out is for a service that is tried"},
		{"try --spare", "--spare is of --step"},
		{"try --step A.select --fast", "--fast is not for --step, which plays one schedule"},
		{"try --step A.select --only probe", "--only is not for --step"},
		{"try --for 0s", "--for is 0s"},
		{"run none --stock 5 setnx", "unexpected argument setnx: words come before flags"},
		{"list people", "want one of strategies"},
		{"list scenarois", `did you mean "scenarios"?`},
		{"soak --sales 0", "--sales is 0"},
		{"soak redlock --sales 9", "redlock needs several"},
		{"soak --faults earthquake", `--faults "earthquake"`},
		{"soak --faults failover,earthquake", `--faults "earthquake"`},
		{"soak --for 0s", "--for is 0s"},
		{"soak --sales 9 --seed 2", "--seed is not of a soak with --sales"},
		{"soak --kill-every 3s", "--kill-every is of a soak with --sales"},
		{"soak none batched --sales 9", "--sales is for one strategy"},
		{"soak --for 10", "missing unit"},
		{"soak fenced redlock", "redlock needs several"},
		{"soak --rate 1e9", "--rate"},
		{"soak --shops 16 --rate 10", "want --rate 52 at least"},
		{"soak --rate 10000 --for 168h", "6048000000 orders: want at most 50000000"},
		{"soak hope", `no strategy "hope"`},
		{"soak redlock", "redlock needs several"},
		{"sprint", "sprint"},
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), strings.Fields(tt.args), &out, &errs)
		said := errs.String()
		lines := strings.Split(strings.TrimSpace(said), "\n")
		if code != exitUsage || !strings.Contains(lines[len(lines)-1], tt.want) || out.Len() > 0 || strings.Contains(said, "geheim") {
			t.Errorf("loadtest %s: exit code %d, said %q, want %d and a line with %q", tt.args, code, said, exitUsage, tt.want)
		}
	}
	if left, _ := os.ReadDir(temp); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestTheProgramIsNamedAsItWasCalled: what is printed can be typed.
func TestTheProgramIsNamedAsItWasCalled(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("LOADTEST_AS", "bin/loadtest")
	for args, want := range map[string]string{
		"exercise":         "bin/loadtest exercise 1 ",
		"exercise --check": "want a lesson: bin/loadtest exercise 3 --check",
		"try --init":       "then run bin/loadtest try service.yaml",
		"try none.yaml":    "write one with bin/loadtest try --init",
		"run --colour":     "see bin/loadtest --help",
	} {
		var out, errs bytes.Buffer
		run(t.Context(), strings.Fields(args), &out, &errs)
		if !strings.Contains(out.String()+errs.String(), want) {
			t.Errorf("loadtest %s says %q, %q, want %q", args, out.String(), errs.String(), want)
		}
	}
}

// TestAStrategyOfASavedResultIsItsCellUnderContention, as it is of a run.
func TestAStrategyOfASavedResultIsItsCellUnderContention(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	r := report.Report{Version: report.Version, Environment: report.Environment{Time: "2026-03-01T12:00:00Z"}, Cells: []trial.Result{{Strategy: "none", Scenario: trial.Contention, Runs: 1, Agreed: 1, Requests: 9, Oversold: 3, Verdict: verdict.Oversold, Expected: verdict.Oversold}}}
	if err := wholefile.Write(file, r.JSON); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]int{"none": exitExpected, "none:contention": exitExpected, "none:pause": exitUsage, "mutex": exitUsage} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), []string{"run", args, "--draw", "--from", file}, &out, &errs); code != want {
			t.Errorf("%s: exit code %d, %q, want %d", args, code, errs.String(), want)
		}
	}
}

// TestWhatNoCellHasFails: a check of CI that has seen nothing is not green.
func TestWhatNoCellHasFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	r := report.Report{Version: report.Version, Environment: report.Environment{Time: "2026-03-01T12:00:00Z"}, Cells: []trial.Result{{Strategy: "none", Scenario: trial.Contention, Verdict: verdict.Skipped, Expected: verdict.Oversold}}}
	if err := wholefile.Write(file, r.JSON); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"report", file, "--fail-if", "p99>50ms"}, &out, &errs)
	if want := "--fail-if 'p99>50ms': no cell that ran has p99\n"; code != exitSurprised || !strings.HasSuffix(out.String(), want) {
		t.Errorf("exit code %d, %q, %q, want %d and %q", code, out.String(), errs.String(), exitSurprised, want)
	}
	r.Cells[0].Verdict, r.Cells[0].Expected, r.Cells[0].ByOutcome = verdict.Held, verdict.Held, map[load.Outcome]trial.Latency{load.Sold: {P99: 7}}
	if err := wholefile.Write(file, r.JSON); err != nil {
		t.Fatal(err)
	}
	if code := run(t.Context(), []string{"report", file, "--fail-if", "busy-p99>50ms"}, &out, &errs); code != exitExpected {
		t.Errorf("nobody was rejected as busy: exit code %d, %s", code, errs.String())
	}
}

// TestASoakHasNoEtcd: a strategy whose lock is there would sell nothing, which says nothing of it.
func TestASoakHasNoEtcd(t *testing.T) {
	c := soakCommand{Strategies: []string{"all"}, Shops: 1, Rate: 40, RecoverWithin: time.Second}
	shop := &catalog.Catalog{Strategies: []declared.Strategy{{Name: "in-etcd", NeedsEtcd: true}, {Name: "other"}}}
	if o, err := c.options(shop); err != nil || len(o.Strategies) != 1 || o.Strategies[0].Name != "other" {
		t.Errorf("all are %v, %v", o.Strategies, err)
	}
	c.Strategies = []string{"in-etcd"}
	if _, err := c.options(shop); err == nil {
		t.Error("a soak sells by a lock in an etcd that there is not")
	}
}

// TestASoakThatMeetsNoFaultDecidesNothing: all is sold before the first kill.
func TestASoakThatMeetsNoFaultDecidesNothing(t *testing.T) {
	needsShop(t)
	testserver.NeedsServers(t)
	saved := filepath.Join(t.TempDir(), "soak.txt")
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"soak", "--sales", "1", "--shops", "2", "--save", saved}, &out, &errs)
	if _, err := os.Stat(saved); code != exitFailed || !strings.Contains(errs.String(), "the soak decides nothing: all was sold before the first kill") || err == nil {
		t.Errorf("exit code %d, want %d; saved: %v\n%s\n%s", code, exitFailed, err == nil, &out, &errs)
	}
}

func TestMissingServerIsNamedWithItsCure(t *testing.T) {
	needsShop(t)
	t.Setenv("PATH", t.TempDir())
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"run"}, &out, &errs)
	if code != exitFailed || !strings.Contains(errs.String(), "install") {
		t.Errorf("without programs on the PATH: exit code %d, said %q, want %d and what to install", code, errs.String(), exitFailed)
	}
}

func TestHelpAndListAndExpectOnly(t *testing.T) {
	needsShop(t)
	for _, tt := range []struct {
		args  string
		wants []string
	}{
		{"--help", []string{"Examples:", "Exit codes"}},
		{"--version", []string{flags.Version}},
		{"run --help", []string{"--out", "telling", "semi-sync-timeout"}},
		{"report --help", []string{"loadtest report before.json after.json", "loadtest report - "}},
		{"serve --help", []string{"Without it 127.0.0.1:8080", "Without it out/runs"}},
		{"demo --help", []string{"Without it out."}},
		{"try --help", []string{"it service.yaml."}},
		{"soak --help", []string{"--for=10m", "--seed", "--recover-within", "--kill-every=2s", "--shops=3", "--workers=200", "--mysql-set", "--shop-binary=FILE"}},
		{"list", slices.Concat(ladder.Names(), scenario.Names(), []string{"docs/mistakes/README.md"})},
		{"list properties", append(ladder.Names(), "pause-proof")},
		{"run --expect-only all", append(ladder.Names(), "stuck", "oversold", "held")},
	} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), strings.Fields(tt.args), &out, &errs); code != 0 || errs.Len() > 0 {
			t.Errorf("loadtest %s: exit code %d, said %q", tt.args, code, errs.String())
		}
		for _, want := range tt.wants {
			if !strings.Contains(out.String(), want) {
				t.Errorf("loadtest %s does not say %q", tt.args, want)
			}
		}
		if strings.ContainsAny(out.String(), "\x1b\r") {
			t.Errorf("loadtest %s has control characters in what is no terminal", tt.args)
		}
	}
}

func TestCommandLineHidesPasswords(t *testing.T) {
	got := commandLine([]string{"run", "--mysql", "user:geheim@x", "--redis=redis://:geheim@y", "--shop", "http://a:geheim@z:1", "--shop=http://b:geheim@z:2=/trace/2", "--fail-if", "p99>5ms"})
	if strings.Contains(got, "geheim") || !strings.HasSuffix(got, "@z:2=/trace/2 --fail-if 'p99>5ms'") {
		t.Errorf("commandLine = %q", got)
	}
}

// TestCellsAreRunAgainAsTheyWere: beside scenarios with faults, contention has the conditions of a comparison.
func TestCellsAreRunAgainAsTheyWere(t *testing.T) {
	var p matrix.Plan
	for _, name := range []string{"pause", trial.Contention} {
		sc, err := scenario.ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		p.Pairs = append(p.Pairs, matrix.Pair{Scenario: sc})
	}
	for name, want := range map[string]string{"pause": "--lease 500ms --wait 375ms --retry 2ms --work 0s", trial.Contention: "--lease 10s --wait 5s --retry 2ms --work 10ms"} {
		if got := replay(trial.Result{Scenario: name}, p.OneServer(), ""); !strings.Contains(got, want) {
			t.Errorf("%s is run again by %s, want %s", name, got, want)
		}
	}
}

// TestCellsOfAFewAreRunAgainOnTheSamePrograms, and without what they set themselves.
func TestCellsOfAFewAreRunAgainOnTheSamePrograms(t *testing.T) {
	p := matrix.Plan{RedisServer: "/opt/x", MySQLSet: []string{"a=1"}, Shape: shapeOf(t, "50")}
	const want = "run mine:x --seed 7 --shop-binary ./my/shop --redis-server /opt/x"
	for group, set := range map[string]string{trial.Baskets: " --mysql-set a=1", trial.Reservations: " --mysql-set a=1", "async": ""} {
		got := replay(trial.Result{Strategy: "mine", Scenario: "x", Group: group, Seed: 7}, p, "./my/shop")
		if !strings.HasSuffix(got, want+set+" --draw") {
			t.Errorf("%s is run again by %s", group, got)
		}
	}
}

// TestACellIsExplainedAsItWasRun: what a cell has by itself is left out, and nothing where anything differs.
func TestACellIsExplainedAsItWasRun(t *testing.T) {
	sc, err := scenario.ByName("pause")
	if err != nil {
		t.Fatal(err)
	}
	pairs := []matrix.Pair{{Strategy: declared.Strategy{Name: "mine"}, Scenario: sc}}
	for want, tt := range map[string]struct {
		seed uint64
		plan matrix.Plan
		shop string
	}{
		"run mine:pause --draw":          {1, matrix.Plan{Pairs: pairs}, ""},
		"run mine:pause --seed 3 --draw": {3, matrix.Plan{Pairs: pairs}, ""},
		"run mine:pause --shop-binary ./shop --redis-server /x --mysql-set a=1 --draw":                                                      {1, matrix.Plan{Pairs: pairs, RedisServer: "/x", MySQLSet: []string{"a=1"}}, "./shop"},
		"run mine:pause --stock 30 --requests 120 --workers 12 --lease 2s --wait 1.5s --retry 2ms --work 0s --shops 3 --draw":               {1, matrix.Plan{Pairs: pairs, Lease: 2 * time.Second}, ""},
		"run mine:pause --stock 30 --requests 120 --workers 12 --lease 500ms --wait 375ms --retry 2ms --work 0s --shops 3 --rate 50 --draw": {1, matrix.Plan{Pairs: pairs, Shape: shapeOf(t, "50")}, ""},
	} {
		if got := explaining(trial.Result{Strategy: "mine", Scenario: "pause", Seed: tt.seed}, tt.plan.OneServer(), tt.shop); !strings.HasSuffix(got, want) {
			t.Errorf("it is explained by %s, want %s", got, want)
		}
	}
}

func shapeOf(t *testing.T, rate string) load.Shape {
	t.Helper()
	shape, err := load.ParseShape(rate)
	if err != nil {
		t.Fatal(err)
	}
	return shape
}

// ownProgram is a process in which this test binary is the program.
func ownProgram(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	testserver.NeedsServers(t)
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), own, args...)
	cmd.Env = append(os.Environ(), ownProgramEnv+"=yes")
	return cmd
}

// TestComparison runs the program on private servers. A shop without a lock must oversell, or
// the harness is broken, and one with a right lock must not.
func TestComparison(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "out.json")
	cmd := ownProgram(t, "run", "none", "owner-checked", "reentrant", "--stock", "40", "--out", file)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("loadtest: %v\n%s%s", err, out.String(), errs.String())
	}
	if strings.ContainsAny(out.String()+errs.String(), "\x1b\r") {
		t.Error("control characters in what is no terminal")
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	again := ownProgram(t, "report", "-", "--out", "-", "--format", "xml")
	again.Stdin = bytes.NewReader(content)
	if suite, err := again.Output(); err != nil || !strings.Contains(string(suite), `tests="3" failures="0"`) {
		t.Errorf("the result read from standard input is %s, %v", suite, err)
	}
	var r report.Report
	if err := json.Unmarshal(content, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Cells) != 3 || r.Environment.Redis == "" || r.Environment.MySQL == "" || r.Environment.Cores == 0 {
		t.Fatalf("%d cells, environment %+v", len(r.Cells), r.Environment)
	}
	for _, c := range r.Cells {
		if c.Answered != c.Sold || c.AnswersWithoutOrder != 0 || c.Duplicates != 0 {
			t.Errorf("%s: %d answers, %d orders, %d without order, %d duplicates", c.Strategy, c.Answered, c.Sold, c.AnswersWithoutOrder, c.Duplicates)
		}
		if c.Strategy == "none" && c.Oversold < 20 {
			t.Errorf("none oversold %d of %d, want heavily", c.Oversold, c.InitialStock)
		}
		if c.Strategy != "none" && (c.Sold != c.InitialStock || c.LostUpdates != 0) {
			t.Errorf("%s sold %d of %d, %d updates lost", c.Strategy, c.Sold, c.InitialStock, c.LostUpdates)
		}
	}
}

// TestAnotherRedis runs cells on the program of --redis-server. A strategy that this Redis cannot run is
// skipped with the reason, and not otherwise.
func TestAnotherRedis(t *testing.T) {
	t.Parallel()
	testserver.NeedsServers(t)
	program := filepath.Join(t.TempDir(), "started-by-the-test")
	script := "#!/bin/sh\ntouch \"$0.started\"\nexec \"$(command -v redis-server || command -v valkey-server)\" \"$@\"\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"run", "owner-delex:late-release", "--redis-server", program}, &out, &errs); code != exitExpected {
		t.Fatalf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
	if _, err := os.Stat(program + ".started"); err != nil {
		t.Error("it has started another Redis")
	}
	said := strings.Join(strings.Fields(out.String()), " ")
	skipped := strings.Contains(said, "skipped owner-delex: needs a Redis that knows DELEX (Redis 8.4) or DELIFEQ (Valkey 9), and this one is ")
	if held := strings.Contains(said, "1 held, all as predicted"); skipped == held {
		t.Errorf("it was skipped with the reason: %t, and held: %t\n%s", skipped, held, out.String())
	}
	for _, args := range []string{
		"demo", "run", "serve", "soak", "step none", "explore none", "exercise 2",
	} {
		errs.Reset()
		if code := run(t.Context(), append(strings.Fields(args), "--redis-server", "/no/redis-server"), &out, &errs); code != exitUsage || !strings.Contains(errs.String(), "redis-server") {
			t.Errorf("%s on a Redis that is not there: exit code %d: %s", args, code, errs.String())
		}
	}
}

// TestTellingCells runs a part of the matrix that has every strategy, and attacks every property,
// at least once, and each cell that a chapter of docs/mistakes explains.
func TestTellingCells(t *testing.T) {
	oneMatrix(t)
	testserver.NeedsServers(t)
	shown := map[declared.Property]bool{}
	for _, s := range ladder.All() {
		sc, err := scenario.ByName(s.Declared.Telling)
		if err != nil {
			t.Fatal(err)
		}
		shown[sc.Attacks] = true
	}
	for _, sc := range scenario.Of(trial.OneServer) {
		if !shown[sc.Attacks] {
			t.Errorf("no strategy is tried under %s, or under another scenario that attacks %s", sc.Name, sc.Attacks)
		}
	}
	var out, errs bytes.Buffer
	file := filepath.Join(t.TempDir(), "out.json")
	if code := run(t.Context(), slices.Concat([]string{"run", "telling"}, explainedCells(t), []string{"--out", file}), &out, &errs); code != exitExpected {
		t.Fatalf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
	checkCauses(t, file)
}

func TestInterruptLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ args, until string }{
		{"run setnx:pause --runs 50", "1/50"},
		{"soak", "2: +"},
		{"soak --sales 1000000 --kill-every 500ms", "2: +"},
	} {
		temp := t.TempDir()
		cmd := ownProgram(t, strings.Fields(tt.args)...)
		cmd.Env = append(cmd.Env, "TMPDIR="+temp)
		interrupt(t, cmd, tt.until)
		if left, _ := os.ReadDir(temp); len(left) > 0 {
			t.Errorf("loadtest %s: left behind: %v", tt.args, left)
		}
		if out, _ := exec.Command("pgrep", "-f", temp).Output(); len(out) > 0 {
			t.Errorf("loadtest %s: processes left: %s", tt.args, out)
		}
	}
}

// TestAFileThatCannotBeWrittenHidesNoSurprise: the exit code says that there is one, and a line why the file is missing.
func TestAFileThatCannotBeWrittenHidesNoSurprise(t *testing.T) {
	var out, errs bytes.Buffer
	inTheWay := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(inTheWay, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o := reportOutputs{outputs: outputs{Out: []string{inTheWay + "/r.json"}}, FailIf: []string{"oversold>0"}}
	r := report.Report{Strategies: []declared.Strategy{{Name: "none"}}, Cells: []trial.Result{{Strategy: "none", Scenario: trial.Contention, Runs: 1, Agreed: 1, Requests: 9, Oversold: 3, Verdict: verdict.Oversold, Expected: verdict.Oversold}}}
	threshold, err := report.ParseThreshold(o.FailIf[0])
	if err != nil {
		t.Fatal(err)
	}
	o.thresholds = []report.Threshold{threshold}
	err = o.finish(r, streams{out: &out, err: &errs}, errors.New("nor the requests"))
	if !errors.Is(err, errSurprised) || !strings.Contains(out.String(), "oversold>0") || !strings.Contains(errs.String(), "r.json") || !strings.Contains(errs.String(), "nor the requests") {
		t.Errorf("%v, said %q and %q", err, out.String(), errs.String())
	}
	o.thresholds = nil
	if err := o.finish(r, streams{out: &out, err: &errs}, nil); err == nil || errors.Is(err, errSurprised) {
		t.Errorf("without a surprise: %v", err)
	}
}
