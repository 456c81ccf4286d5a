package report

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"

	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/wholefile"
	"stocklock/internal/lab/words"
	"stocklock/internal/strategy/ladder"
)

var update = flag.Bool("update", false, "write the golden files anew")

// saved is a result with cells of every kind. It was written without what the shop said of its strategies.
func saved(t *testing.T) Report {
	t.Helper()
	r, err := Read(filepath.Join("testdata", "saved.json"))
	if err != nil {
		t.Fatal(err)
	}
	r.Strategies = ladder.Describe(ladder.All())
	return r
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		gotLines, wantLines := strings.Split(got, "\n"), strings.Split(string(want), "\n")
		for i := range min(len(gotLines), len(wantLines)) {
			if gotLines[i] != wantLines[i] {
				t.Fatalf("%s, line %d:\n got %s\nwant %s\nIf that is right: go test ./internal/lab/report -update", path, i+1, gotLines[i], wantLines[i])
			}
		}
		t.Fatalf("%s has %d lines, got %d. If that is right: go test ./internal/lab/report -update", path, len(wantLines), len(gotLines))
	}
}

func TestForms(t *testing.T) {
	r := saved(t)
	terminal := func(print func(Terminal)) Form {
		return func(_ Report, w io.Writer) error { print(Terminal{Out: w}); return nil }
	}
	for name, form := range map[string]Form{
		"report.txt":   terminal(func(t Terminal) { t.Report(r) }),
		"compared.txt": terminal(func(t Terminal) { t.Compare(changed(r), r) }),
		"explained.txt": terminal(func(t Terminal) {
			for _, c := range slices.Concat(r.Cells[:5], r.Cells[7:]) { // the others are drawn alike
				t.Explain(c)
				fmt.Fprintln(t.Out)
			}
		}),
		"report.csv": Report.CSV,
		"report.md":  Report.Markdown,
		"report.xml": Report.JUnit,
	} {
		golden(t, name, written(t, form, r))
	}
}

// changed is an earlier report: one cell less and one more, another verdict, other numbers and
// settings.
func changed(r Report) Report {
	before := r
	before.Interrupted = false
	before.Cells = append([]trial.Result{}, r.Cells[:5]...)
	before.Cells[0].SalesPerSecond *= 2
	before.Cells[1].Latency.P99 *= 1.05
	before.Cells[2].Scenario = "overrun"
	before.Cells[3].Verdict, before.Cells[3].Expected = "held", "stuck"
	before.Environment.LeaseMS, before.Environment.Testbeds = 2000, 1
	return before
}

func TestJSONIsReadAgain(t *testing.T) {
	r := saved(t)
	path := filepath.Join(t.TempDir(), "r.json")
	if err := wholefile.Write(path, r.JSON); err != nil {
		t.Fatal(err)
	}
	again, err := Read(path)
	if err != nil || !reflect.DeepEqual(again, r) {
		t.Errorf("read again: %v, and the same: %v", err, reflect.DeepEqual(again, r))
	}
	if err := wholefile.Write(path, Report{Environment: r.Environment, Interrupted: true}.JSON); err != nil {
		t.Fatal(err)
	}
	if again, err := Read(path); err != nil || len(again.Cells) != 0 {
		t.Errorf("an interrupted report without cells, read again: %v, %d cells", err, len(again.Cells))
	}
}

func TestComparingSaysWhatDiffers(t *testing.T) {
	for _, tt := range []struct {
		change func(*Report)
		want   string
	}{
		{func(r *Report) { r.Environment.Time, r.Environment.Command = "2026-03-02T12:00:00Z", "loadtest" }, ""},
		{func(r *Report) { r.Environment.OS, r.Environment.Cores = "darwin/arm64", 8 }, "system linux/amd64, 2 cores and darwin/arm64, 8 cores"},
		{func(r *Report) { r.Environment.Seed = 2 }, "seed 1 and 2"},
		{func(r *Report) { r.Environment.Go = "go1.27" }, "Go go1.26.8 and go1.27"},
		{func(r *Report) { r.Environment.MySQL = "MySQL 9" }, "database 10.11.19-MariaDB-0+deb12u1 and MySQL 9"},
		{func(r *Report) { r.Environment.Redis = "" }, "Redis Redis 7.0.15 and unknown Redis"},
		{func(r *Report) { r.Environment.Libraries = nil }, "github.com/redis/go-redis/v9 v9.23.0 and none"},
		{func(r *Report) { r.Environment.Rate = "200" }, "requests a second none and 200"},
		{func(r *Report) { r.Environment.Shops = 5 }, "shops 3 and 5"},
		{func(r *Report) { r.Environment.Testbeds = 1 }, "testbeds side by side 4 and 1"},
		{func(r *Report) { r.Environment.Workers = 50 }, "customers 12 and 50"},
		{func(r *Report) { r.Environment.LeaseMS = 1000 }, "lease 500 ms and 1000 ms"},
		{func(r *Report) { r.Environment.WaitMS = 1000 }, "wait 375 ms and 1000 ms"},
		{func(r *Report) { r.Environment.RetryMS, r.Environment.WorkMS = 3, 0 }, "retry 2 ms and 3 ms; work 10 ms and 0 ms"},
		{func(r *Report) { r.Cells[0].InitialStock, r.Cells[0].Requests = 100, 400 }, "stock 30 and 100; requests 120 and 400"},
		{func(r *Report) { r.Cells[3].Runs = 5 }, "runs 1 and 5"},
		{func(r *Report) { r.Cells[3].Requests = 500 }, ""}, // under crash, it goes on until all is sold
	} {
		before, after := saved(t), saved(t)
		tt.change(&after)
		if got := strings.Join(differences(words.English, before, after), "; "); got != tt.want {
			t.Errorf("differences = %q, want %q", got, tt.want)
		}
		for _, said := range differences(words.Chinese, before, after) {
			if regexp.MustCompile(`\b(and|none|stock|requests|runs|cores|unknown|lease|shops|customers)\b`).MatchString(said) {
				t.Errorf("English is left in the Chinese %q", said)
			}
		}
	}
}

// TestTheConditionsOfComparedCellsDecide: beside other scenarios, contention has other ones than the environment says.
func TestTheConditionsOfComparedCellsDecide(t *testing.T) {
	calm := trial.Conditions{LeaseMS: 10000, WaitMS: 5000, RetryMS: 2, WorkMS: 10}
	for _, tt := range []struct {
		change func(*Report)
		want   string
	}{
		{func(r *Report) { r.Cells[0].Conditions.WorkMS = 0 }, "work 10 ms and 0 ms"},
		{func(r *Report) { r.Environment.Conditions = calm }, ""},
		{func(r *Report) { r.Cells[0].Conditions, r.Environment.LeaseMS = trial.Conditions{}, 1000 }, "lease 500 ms and 1000 ms"}, // of an older program
	} {
		before, after := saved(t), saved(t)
		before.Cells[0].Conditions, after.Cells[0].Conditions = calm, calm
		tt.change(&after)
		if got := strings.Join(differences(words.English, before, after), "; "); got != tt.want {
			t.Errorf("differences = %q, want %q", got, tt.want)
		}
	}
}

func TestACellThatHasBecomeDegradedHasChanged(t *testing.T) {
	cell := trial.Result{Strategy: "fenced", Scenario: "overrun", Verdict: verdict.Held, Expected: verdict.Held, InitialStock: 30, Sold: 30}
	before := Report{Cells: []trial.Result{cell}}
	cell.Sold, cell.Remaining = 12, 18
	var out bytes.Buffer
	Terminal{Out: &out}.Compare(before, Report{Cells: []trial.Result{cell}})
	for _, want := range []string{"held → degraded", "1 cell with another verdict, 0 with the same"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in\n%s", want, &out)
		}
	}
}

// TestTheEnvironmentIsSaidInChinese: what stays are versions and units.
func TestTheEnvironmentIsSaidInChinese(t *testing.T) {
	e := Environment{OS: "linux/amd64", Cores: 2}
	for _, f := range e.Facts() {
		if said := words.Chinese.Say(f.Value); regexp.MustCompile(`core|unknown|database`).MatchString(said) {
			t.Errorf("%s is %q", f.Name, said)
		}
	}
}

func TestNumbersOfCrowdedCellsAreMarked(t *testing.T) {
	const mark = "Measured while 4 cells ran side by side"
	all := func(r Report) [3]string {
		var terminal, compared bytes.Buffer
		Terminal{Out: &compared}.Compare(r, r)
		r.Cells, _ = r.Compared()
		Terminal{Out: &terminal}.Report(r)
		return [3]string{written(t, Report.Markdown, r), terminal.String(), compared.String()}
	}
	r := saved(t)
	for i, written := range all(r) {
		if !strings.Contains(written, mark) {
			t.Errorf("form %d says nothing of 4 testbeds", i)
		}
	}
	r.Environment.Testbeds = 1
	for i := range r.Cells {
		r.Cells[i].CostPerSale = nil
	}
	for i, written := range all(r) {
		if strings.Contains(written, "side by side:") || strings.Contains(written, "Redis per sale") || strings.Contains(written, "Redis/sale") {
			t.Errorf("form %d speaks of other testbeds, or of costs, where there are none", i)
		}
	}
}

func TestWhatWasNotMeasuredIsNoZero(t *testing.T) {
	r := saved(t)
	r.Cells = []trial.Result{r.Cells[0], r.Cells[7]}
	r.Cells[1].Scenario = r.Cells[0].Scenario
	var out bytes.Buffer
	Terminal{Out: &out}.Report(r)
	if !regexp.MustCompile(`\n redlock( +–){8}  skipped\n`).MatchString(out.String()) {
		t.Errorf("a skipped cell has numbers:\n%s", out.String())
	}
	out.Reset()
	Terminal{Out: &out}.Compare(r, r)
	if !regexp.MustCompile(`\n redlock +contention +–\n`).MatchString(out.String()) {
		t.Errorf("a skipped cell is compared by numbers:\n%s", out.String())
	}
}

func TestOneIsNotMany(t *testing.T) {
	r := saved(t)
	r.Cells = r.Cells[4:5]
	r.Environment.Cores, r.Environment.Redis = 1, ""
	var out bytes.Buffer
	Terminal{Out: &out}.Report(r)
	if want := "1 cell: 1 invalid, 1 surprise · 10.11.19-MariaDB-0+deb12u1, unknown Redis, 1 core, seed 1\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("the last line is not %q in:\n%s", want, out.String())
	}
	if want := "10.11.19-MariaDB-0+deb12u1, unknown Redis, 1 core, seed 1\n"; !strings.Contains(written(t, Report.Markdown, r), want) {
		t.Errorf("no %q in:\n%s", want, written(t, Report.Markdown, r))
	}
}

// TestTheChineseHeaderStandsOverItsColumns: a character is two columns wide.
func TestTheChineseHeaderStandsOverItsColumns(t *testing.T) {
	drawn := 0
	for _, c := range saved(t).Cells {
		var out strings.Builder
		Terminal{Out: &out, Lang: words.Chinese}.Explain(c)
		for line := range strings.Lines(out.String()) {
			if before, _, header := strings.Cut(line, "毫秒  "); header {
				drawn++
				if at := text.StringWidthWithoutEscSequences(before + "毫秒  "); at != timeWidth {
					t.Errorf("%s: the columns begin at %d, want %d: %s", c.Name(), at, timeWidth, line)
				}
			}
		}
	}
	if drawn == 0 {
		t.Error("nothing is drawn")
	}
}

// TestExplanationsFitTheTerminal also wants no colours where they were not asked for.
func TestExplanationsFitTheTerminal(t *testing.T) {
	for _, c := range saved(t).Cells {
		for width, fits := range map[int]int{0: 100, 200: 100, 80: 80} {
			var narrow strings.Builder
			Terminal{Out: &narrow, Width: width}.Explain(c)
			for _, line := range strings.Split(narrow.String(), "\n") {
				if got := text.StringWidthWithoutEscSequences(line); got > fits {
					t.Errorf("%s under %s: %d columns, want at most %d: %s", c.Strategy, c.Scenario, got, fits, line)
				}
			}
		}
		var plain, colourful bytes.Buffer
		Terminal{Out: &plain}.Explain(c)
		Terminal{Out: &colourful, Colour: true}.Explain(c)
		if strings.Contains(plain.String(), "\x1b") || !strings.Contains(colourful.String(), "\x1b") {
			t.Errorf("%s under %s: colours where none were asked for, or none where they were", c.Strategy, c.Scenario)
		}
		if text.StripEscape(colourful.String()) != plain.String() {
			t.Errorf("%s under %s: the colours change the text", c.Strategy, c.Scenario)
		}
	}
}

// widest is a report under contention with numbers as large as they come.
func widest(t *testing.T) Report {
	r := saved(t)
	fast, slow := r.Cells[0], r.Cells[1]
	fast.Sold, fast.InitialStock, fast.Oversold, fast.LostUpdates, fast.SalesPerSecond = 400, 100, 300, 364, 788.2
	slow.Strategy, slow.Sold, slow.InitialStock, slow.SoldOut, slow.Unknown = "reentrant-fixed", 100, 100, 300, 12
	slow.Latency = trial.Latency{P50: 121, P95: 1681, P99: 1990, Max: 21165}
	r.Cells = []trial.Result{fast, slow}
	return r
}

func TestTablesFitTheTerminal(t *testing.T) {
	mixed := saved(t)
	mixed.Interrupted = false // so that it is no matrix
	expected := Report{Strategies: ladder.Describe(ladder.All())}
	for _, st := range expected.Strategies {
		for _, sc := range scenario.Of(trial.OneServer) {
			expected.Cells = append(expected.Cells, trial.Result{Strategy: st.Name, Scenario: sc.Name, Expected: sc.Expected(st).Verdict})
		}
	}
	for _, width := range []int{0, 119, 80} {
		var out bytes.Buffer
		terminal := Terminal{Out: &out, Width: width}
		terminal.comparison(widest(t).Cells)
		terminal.singly(mixed)
		terminal.table(mixed, terminal.short)
		terminal.wrapped(terminal.legend(mixed.Cells))
		terminal.Compare(changed(mixed), mixed)
		terminal.Strategies(ladder.Describe(ladder.All()))
		terminal.Scenarios()
		terminal.Properties(ladder.Describe(ladder.All()))
		terminal.Expected(expected)
		rows := 0
		for _, line := range strings.Split(out.String(), "\n") {
			if strings.TrimRight(line, " ") != line {
				t.Errorf("in %d columns, blanks at the end of %q", width, line)
			}
			isRow := strings.HasPrefix(line, "─") || regexp.MustCompile(`^ [a-z-]+  `).MatchString(line)
			if got := text.StringWidthWithoutEscSequences(line); isRow && width > 0 && got > width {
				t.Errorf("in %d columns, a row with %d: %s", width, got, line)
			}
			if isRow {
				rows++
			}
		}
		if rows < 100 {
			t.Errorf("in %d columns, %d rows of tables, want more", width, rows)
		}
	}
}

func TestANarrowTerminalLeavesOutAndSaysSo(t *testing.T) {
	for _, width := range []int{0, 80} {
		var out bytes.Buffer
		Terminal{Out: &out, Width: width}.comparison(widest(t).Cells)
		if says := strings.Contains(out.String(), "left out: p95 ms, unknown, lost updates"); says != (width > 0) {
			t.Errorf("in %d columns, it says what is left out: %v\n%s", width, says, out.String())
		}
	}
}

// TestMarkdownStaysCode: whatever a result says, each line is code.
func TestMarkdownStaysCode(t *testing.T) {
	r := saved(t)
	r.Cells[0].Strategy, r.Cells[4].Scenario, r.Cells[4].Replay = "a|b`c", "<img src=x>", "`<b>`\n# x"
	r.Environment.Go, r.Environment.Command = "\n\ngo", "loadtest\n\n# x"
	for line := range strings.Lines(written(t, Report.Markdown, r)) {
		if !strings.HasPrefix(line, "    ") {
			t.Errorf("%q is no code", line)
		}
	}
}

// A report of a newer version may have strategies and scenarios that this one does not know.
func TestWhatIsNotKnownIsShown(t *testing.T) {
	r := saved(t)
	r.Interrupted = true
	r.Cells[0].Strategy, r.Cells[1].Scenario = "lock-of-tomorrow", "storm"
	var matrix bytes.Buffer
	Terminal{Out: &matrix}.Report(r)
	for _, want := range []string{"lock-of-tomorrow", "storm"} {
		if got := matrix.String(); !strings.Contains(got, want) {
			t.Errorf("no %s in the terminal:\n%s", want, got)
		}
		if got := written(t, Report.Markdown, r); !strings.Contains(got, want) {
			t.Errorf("no %s in Markdown:\n%s", want, got)
		}
	}
}

// written is a report in one of its forms.
func written(t *testing.T, form Form, r Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := form(r, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestThresholds(t *testing.T) {
	r := saved(t)
	for _, tt := range []struct {
		spec   string
		broken int
		says   string
	}{
		{"oversold>0", 3, "none:contention has oversold 90"},
		{"oversold>=90", 1, "none:contention"},
		{"oversold > 100000", 0, ""},
		{"oversold=0", 4, "fenced:pause"},
		{"oversold!=0", 3, "redlock:pause"},
		{"p99>1ms", 7, "ms"},
		{"p99<=1h", 7, "ms"},
		{"sales-per-second<0.5", 0, ""},
		{"redis-per-sale>1", 1, "fenced:contention has redis-per-sale 1.4"},
	} {
		threshold, err := ParseThreshold(tt.spec)
		if err != nil {
			t.Errorf("ParseThreshold(%q): %v", tt.spec, err)
			continue
		}
		if got := threshold.Broken(r); len(got) != tt.broken || !strings.Contains(strings.Join(got, "\n"), tt.says) {
			t.Errorf("%s is broken by %q, want %d, and %q among them", tt.spec, got, tt.broken, tt.says)
		}
	}
	for _, spec := range []string{"", "oversold", "luck>1", "oversold>", "oversold>few", "oversold>NaN", "p99>50", "p99>-1s", "p99!50ms", ">5", "oversold>1>2"} {
		if _, err := ParseThreshold(spec); err == nil {
			t.Errorf("ParseThreshold(%q) = nil, want an error", spec)
		}
	}
}

// TestOnlyWhatCanBeComparedIsInOneTable joins two reports, as the demo does: one stock sold by one cell at
// a time, and another by four.
func TestOnlyWhatCanBeComparedIsInOneTable(t *testing.T) {
	cell := func(strategy string, stock int64) trial.Result {
		return trial.Result{Strategy: strategy, Scenario: "contention", InitialStock: stock, Requests: 400, Verdict: verdict.Held, Expected: verdict.Held}
	}
	alone := Report{Environment: Environment{Testbeds: 1}, Cells: []trial.Result{cell("none", 100), cell("setnx", 100)}}
	beside := Report{Environment: Environment{Testbeds: 4}, Cells: []trial.Result{cell("mutex", 30), cell("batched", 30), cell("conditional", 30)}}
	for _, tt := range []struct {
		of          Report
		table, note string
	}{
		{alone, "none setnx", ""},
		{beside, "mutex batched conditional", ""},
		{Joined(alone, beside), "none setnx", "mutex, batched, conditional"},
		{Joined(alone, Report{Environment: Environment{Testbeds: 1}, Cells: beside.Cells[:1]}), "none setnx", "mutex"},
	} {
		cells, others := tt.of.Compared()
		note := strings.Join(others, ", ")
		var names []string
		for _, c := range cells {
			names = append(names, c.Strategy)
		}
		if got := strings.Join(names, " "); got != tt.table || note != tt.note {
			t.Errorf("the table has %s, and beside it %q, want %s and %q", got, note, tt.table, tt.note)
		}
	}
}

// TestWhatWasNotTimedIsNoZero: a cell that counts its requests, and does not time them, has no latency and no rate.
func TestWhatWasNotTimedIsNoZero(t *testing.T) {
	numbers, _ := Numbers(trial.Result{Requests: 16})
	shown := map[string]string{}
	for _, n := range numbers {
		shown[n.Name] = n.Text
	}
	for _, name := range []string{"sales-per-second", "p50", "p99", "max"} {
		if shown[name] != dash {
			t.Errorf("%s is %q, want %s", name, shown[name], dash)
		}
	}
	if shown["requests"] != "16" {
		t.Errorf("requests are %q, want 16", shown["requests"])
	}
}

// TestMarkdownDrawsWhatBroke: without a matrix, the first cell of each cause is drawn as in the terminal, and one that tells
// a story alone tells it. In a matrix, surprises alone are drawn.
func TestMarkdownDrawsWhatBroke(t *testing.T) {
	r := saved(t)
	r.Interrupted = false
	r.Cells[2].Expected = r.Cells[2].Verdict
	again := r.Cells[2]
	again.Strategy = "setnx"
	r.Cells = []trial.Result{r.Cells[2], again, {Strategy: "saga", Scenario: "crossed", Verdict: verdict.Left, Expected: verdict.Left, Story: []words.Text{words.AsItStands("A: sold")}}}
	var terminal bytes.Buffer
	Terminal{Out: &terminal}.Drawings(r)
	for form, got := range map[string]string{"Markdown": written(t, Report.Markdown, r), "the terminal": terminal.String()} {
		if n := strings.Count(got, "again: "); n != 1 || !strings.Contains(got, "  A: sold") || !strings.Contains(got, "▲ oversold") {
			t.Errorf("%s has %d drawings, want the first of the cause, and the story:\n%s", form, n, got)
		}
	}
	r.Interrupted = true // of a matrix
	if got := written(t, Report.Markdown, r); strings.Contains(got, "▲ oversold") {
		t.Errorf("what was expected of a matrix is drawn:\n%s", got)
	}
}

// TestChineseIsBrokenBetweenCharacters: no name is cut, and no line begins with a mark. Too long a word is cut.
func TestChineseIsBrokenBetweenCharacters(t *testing.T) {
	column := wrapped(1, 24).WidthMaxEnforcer
	for _, s := range []string{"完全不加锁：读库存，计算，写回", "用 Lua 脚本检查持有者后删除：Redis 文档中的写法", "SETNX 加锁，DEL 释放（没有过期时间）"} {
		all := column(s, 24)
		for line := range strings.SplitSeq(all, "\n") {
			if strings.ContainsAny(line[:3], "，。：）") || text.StringWidth(line) > 24 || strings.HasSuffix(line, "Re") {
				t.Errorf("%q in\n%s", line, all)
			}
		}
		if strings.Join(strings.Fields(all), "") != strings.Join(strings.Fields(s), "") {
			t.Errorf("%q lost something:\n%s", s, all)
		}
	}
	var said strings.Builder
	Terminal{Out: &said, Width: 24}.wrapped("x" + strings.Repeat("锁", 30)) // an odd column is left
	for line := range strings.Lines(said.String()) {
		if text.StringWidth(strings.TrimSpace(line)) > 24 {
			t.Errorf("a line of more than 24 columns: %s", line)
		}
	}
	if long := strings.Repeat("x", 30); !strings.Contains(column("a "+long, 24), "a\n"+long[:24]+"\n") {
		t.Errorf("too long a word: %q", column("a "+long, 24))
	}
}

// TestSkippedCellsHaveNames, though the English words of their reason were others when the result was saved.
func TestSkippedCellsHaveNames(t *testing.T) {
	of := skipped([]trial.Result{{Strategy: "etcd", Scenario: "contention", Verdict: verdict.Skipped, Unfit: trial.UnfitStrategy,
		Problem: "needs an etcd of its own", Lacks: words.Of("unfit.etcd")}})
	if said := words.English.Say(of...); !strings.Contains(said, "skipped etcd: needs an etcd") {
		t.Errorf("the line is %q", said)
	}
}
