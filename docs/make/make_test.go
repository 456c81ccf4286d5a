package main

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/mistakes"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/trial"
	"stocklock/internal/lab/verdict"
	"stocklock/internal/lab/words"
	"stocklock/internal/strategy/ladder"
	"stocklock/internal/testserver"
)

func allPages(t *testing.T) []page {
	t.Helper()
	measured, err := measuredPages("../../bench/results")
	if err != nil {
		t.Fatal(err)
	}
	return append(pages(languages(), ladder.Describe(ladder.All())), measured...)
}

func read(t *testing.T, p page) string {
	t.Helper()
	content, err := os.ReadFile("../" + p.path)
	if err != nil {
		t.Error(err)
	}
	return string(content)
}

// TestPagesAreUpToDate holds the pages to what the code and the kept cells make, and each section to a story by
// hand. What schedules print is in [TestSchedulesPrintWhatChaptersShow].
func TestPagesAreUpToDate(t *testing.T) {
	kept, err := keptCells("cells.json")
	if err != nil {
		t.Fatal(err)
	}
	results := byName(kept.Cells)
	shown := map[string]bool{}
	for _, p := range allPages(t) {
		text := read(t, p)
		checkCell(t, p, results)
		checkSchedule(t, p, text)
		shown[p.shows.cell] = true
		blocks := slices.Collect(maps.Keys(p.made))
		if p.facts != nil {
			blocks = []string{""}
		}
		for _, name := range blocks {
			if !strings.Contains(text, "\n"+madeBegin(name)) {
				t.Errorf("docs/%s has lost the mark of the made part %q", p.path, name)
			}
		}
		if marks := strings.Count(text, madeMark); marks != len(blocks) || strings.Count(text, madeEnd) != marks {
			t.Errorf("docs/%s has %d marks of made parts, want %d, each with its end", p.path, marks, len(blocks))
		}
		if p.render(text, p.output(text, nil, results)) != text {
			t.Errorf("docs/%s is stale: run make docs", p.path)
		}
	}
	for name := range results {
		if !shown[name] {
			t.Errorf("cells.json has %s, which no page shows: run make docs", name)
		}
	}
}

// TestEachNameHasOneSection: in one chapter of each language, with a story under the made paragraph.
func TestEachNameHasOneSection(t *testing.T) {
	var names []string
	for _, s := range ladder.All() {
		names = append(names, s.Describe().Name)
	}
	for _, sc := range scenario.Of(trial.OneServer) {
		names = append(names, sc.Name)
	}
	slices.Sort(names)
	told := map[string][]string{}
	for _, p := range allPages(t) {
		if p.facts == nil {
			continue
		}
		sections := mistakes.Named.Split(read(t, p), -1)[1:]
		for i, name := range mistakes.Named.FindAllStringSubmatch(read(t, p), -1) {
			told[p.file] = append(told[p.file], name[1])
			if _, story, _ := strings.Cut(strings.TrimSpace(sections[i]), "\n\n"); utf8.RuneCountInString(story) < 40 {
				t.Errorf("docs/%s tells nothing of %s", p.path, name[1])
			}
			want := p.path + "#" + name[1]
			if got := mistakes.Section(name[1], p.tag); got != "docs/"+want {
				t.Errorf("the address of %s is %q, want docs/%s", name[1], got, want)
			}
		}
	}
	for file, has := range told {
		slices.Sort(has)
		if !slices.Equal(has, names) {
			t.Errorf("the chapters *%s tell of %v, want each of %v once", file, has, names)
		}
	}
	if len(told) != 2 {
		t.Errorf("there are chapters in %d languages", len(told))
	}
}

// TestWhatMendsHolds: a strategy that fails in its telling cell names others, which hold there.
func TestWhatMendsHolds(t *testing.T) {
	for _, s := range ladder.All() {
		sc, err := scenario.ByName(s.Declared.Telling)
		if err != nil {
			t.Fatal(err)
		}
		if fails := verdict.Of(sc.Expected(s.Describe()).Verdict).Bad; fails != (mends[s.Describe().Name] != nil) {
			t.Errorf("%s fails under %s: %t, and what mends it is %v", s.Describe().Name, sc.Name, fails, mends[s.Describe().Name])
		}
		for _, by := range mends[s.Describe().Name] {
			of, err := ladder.ByName(by)
			if err != nil {
				t.Fatal(err)
			}
			if v := sc.Expected(of.Describe()).Verdict; v != verdict.Held {
				t.Errorf("%s does not mend %s: under %s it is to end %s", by, s.Describe().Name, sc.Name, v)
			}
		}
	}
}

// checkCell holds the cell that a chapter shows to the verdict that its strategy declares, and to an
// explanation that names the cause.
func checkCell(t *testing.T, p page, cells map[string]trial.Result) {
	t.Helper()
	if p.shows.cell == "" {
		return
	}
	c, ok := cells[p.shows.cell]
	if !ok || c.Explanation == nil {
		t.Fatalf("cells.json has no explanation of %s: run make docs", p.shows.cell)
	}
	sc, err := scenario.ByName(c.Scenario)
	if err != nil {
		t.Fatal(err)
	}
	of, err := ladder.ByName(c.Strategy)
	if err != nil {
		t.Fatal(err)
	}
	if c.Verdict != sc.Expected(of.Describe()).Verdict || c.Surprise() {
		t.Errorf("docs/%s shows %s, which ended %s: run make docs ARGS=%s", p.path, c.Name(), c.Verdict, c.Name())
	}
	if !c.Explanation.Known() {
		t.Errorf("docs/%s shows %s, and does not say why it ended so: %s", p.path, c.Name(), words.English.Say(c.Explanation.Why...))
	}
	for _, why := range c.Explanation.Why {
		if why.Key == "nobody-came" {
			t.Errorf("docs/%s shows %s, which says nothing: %s", p.path, c.Name(), why.Key)
		}
	}
}

// checkSchedule holds the last line of what a schedule printed to how it is to end, which needs no
// servers.
func checkSchedule(t *testing.T, p page, text string) {
	t.Helper()
	if p.shows.strategy == "" || p.translated() {
		return
	}
	_, after, _ := strings.Cut(text, "$ "+p.shows.command()+"\n")
	block, _, _ := strings.Cut(after, "\n```")
	last := block[strings.LastIndex(block, "\n")+1:]
	verdict, cause := p.shows.outcome()
	if !strings.HasPrefix(last, string(verdict)) || cause != "" && !strings.HasSuffix(last, ": "+cause.Doc()) {
		t.Errorf("docs/%s ends with %q, want %s: %s: run make docs", p.path, last, verdict, cause.Doc())
	}
}

// TestSchedulesPrintWhatChaptersShow plays the schedules of all strategies, holds each to its outcome, and compares
// what loadtest prints of those that a chapter shows byte for byte.
func TestSchedulesPrintWhatChaptersShow(t *testing.T) {
	testserver.NeedsServers(t)
	shop, err := catalog.Open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer shop.Close()
	played, err := playAll(t.Context(), shop)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range allPages(t) {
		if printed := played[p.shows.command()]; p.shows.strategy != "" && !p.translated() && !strings.Contains(read(t, p), "$ "+p.shows.command()+"\n"+printed+"```\n") {
			t.Errorf("docs/%s shows something else than its schedule prints: run make docs\n%s", p.path, printed)
		}
	}
}

// TestBothSides wants a scenario's section to name one strategy that fails and one that holds.
func TestBothSides(t *testing.T) {
	for _, sc := range scenario.Of(trial.OneServer) {
		if fails, holds := bothSides(sc, ladder.Describe(ladder.All())); fails.Name == "" || holds.Name == "" {
			t.Errorf("%s is shown by %q and %q", sc.Name, fails.Name, holds.Name)
		}
	}
}

func TestRenderKeepsWhatIsWrittenByHand(t *testing.T) {
	p := page{language: english, facts: map[string]string{"a": "A now.\n- code\n", "b": "B now.\n"}}
	old := "# Title\n\nLead.\n\n" + madeBegin("") + "printed\n" + madeEnd + "\n## `a`\n\nA before.\n\nThe story of a.\n\n## `b`\n\nB before.\n- more\n\nThe story of b.\n"
	want := "# Title\n\nLead.\n\n" + madeBegin("") + "printed again\n" + madeEnd + "\n## `a`\n\nA now.\n- code\n\nThe story of a.\n\n## `b`\n\nB now.\n\nThe story of b.\n"
	for range 2 {
		if old = p.render(old, "printed again\n"); old != want {
			t.Fatalf("rendered:\n%s\nwant:\n%s", old, want)
		}
	}
}

// TestMeasuredTables makes tables of a small file.
func TestMeasuredTables(t *testing.T) {
	m, err := parse(strings.NewReader("date: 2026-11-28\ncommit: abc\nmachine: linux/amd64, 2 cores\nload: 0.1 to 1.9\ncommand: bin/bench\ncommand: bin/bench again\n\n" +
		"BenchmarkScale/hot/48_customers/lock=conditional 9 1 of-first\nBenchmarkScale/hot/48_customers/lock=batched 9 3 of-first\n" +
		"BenchmarkScale/hot/48_customers/lock=batched 9 4.5 of-first\nBenchmarkScale/hot/48,_binlog/lock=conditional 9 2 of-first\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := "|  | 48 customers | 48, binlog |\n|---|---:|---:|\n| `conditional` | 1.00 | 2.00 |\n| `batched` | 3.75 | – |\n"
	if got := m.scale("of-first", ""); got != want {
		t.Errorf("made\n%swant\n%s", got, want)
	}
	if got := m.scale("of-first", "batched"); !strings.Contains(got, "| `conditional` | 0.27 | – |") {
		t.Errorf("made of batched\n%s", got)
	}
	migrated, err := parse(strings.NewReader("BenchmarkMigration/3_million/the_alteration 1 35.1 s 6551 sales 0 refused\nBenchmarkMigration/6_million/the_alteration 1 207 s\n"))
	if want := "|  | 3 million orders | 6 million orders |\n|---|---:|---:|\n| the alteration | 35.1 s, 6551 sales, 0 refused | 207 s |\n"; err != nil || migrated.migration() != want {
		t.Errorf("made %v\n%swant\n%s", err, migrated.migration(), want)
	}
	source := "\n2026-11-28, at commit abc; linux/amd64, 2 cores; load average 0.1 to 1.9: [`bin/bench`, `bin/bench again`](../bench/results/hot.txt).\n"
	if got := m.source("hot"); got != source {
		t.Errorf("the source is %q, want %q", got, source)
	}
	if _, err := parse(strings.NewReader("BenchmarkScale/x many 1 of-first\n")); err == nil {
		t.Error("a line with a word for a number was read")
	}
}
