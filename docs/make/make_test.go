package main

import (
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"stocklock/internal/lab/catalog"
	"stocklock/internal/lab/explain"
	"stocklock/internal/lab/scenario"
	"stocklock/internal/lab/trial"
	"stocklock/internal/strategy/ladder"
	"stocklock/internal/testserver"
)

func allPages(t *testing.T) []page {
	t.Helper()
	in, err := languages()
	if err != nil {
		t.Fatal(err)
	}
	return pages(in, ladder.Describe(ladder.All()))
}

func read(t *testing.T, p page) string {
	t.Helper()
	content, err := os.ReadFile("../" + p.path)
	if err != nil {
		t.Errorf("%v: run make docs", err)
	}
	return string(content)
}

// TestPagesAreUpToDate holds the pages to what the code and the kept cells make, and to have an
// explanation by hand. What schedules print is in [TestSchedulesPrintWhatPagesShow].
func TestPagesAreUpToDate(t *testing.T) {
	kept, err := keptCells("cells.json")
	if err != nil {
		t.Fatal(err)
	}
	results := byName(kept.Cells)
	wanted, shown := map[string]bool{}, map[string]bool{}
	for _, p := range allPages(t) {
		wanted[p.path] = true
		text := read(t, p)
		checkCell(t, p, results)
		checkSchedule(t, p, text)
		shown[p.shows.cell] = true
		if p.render(text, p.output(text, nil, results)) != text {
			t.Errorf("docs/%s is stale: run make docs", p.path)
		}
		for _, part := range p.parts {
			if utf8.RuneCountInString(byHand(text, part)) < 20 {
				t.Errorf("docs/%s: nothing is written under %q", p.path, part)
			}
		}
		if len(p.parts) > 0 && !strings.Contains(text, "\n## "+p.see+"\n\n"+madeBegin) {
			t.Errorf("docs/%s has lost the mark of a made part", p.path)
		}
	}
	for _, folder := range []string{"strategies", "scenarios"} {
		files, err := os.ReadDir("../" + folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if path := folder + "/" + f.Name(); !wanted[path] {
				t.Errorf("docs/%s is about nothing that there is", path)
			}
		}
	}
	for name := range results {
		if !shown[name] {
			t.Errorf("cells.json has %s, which no page shows: run make docs", name)
		}
	}
}

// checkCell holds the cell that a page shows to the verdict that its strategy declares, and to an
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
		t.Errorf("docs/%s shows %s, and does not say why it ended so: %s", p.path, c.Name(), explain.English.Say(c.Explanation.Why...))
	}
	for _, why := range c.Explanation.Why {
		if why.Phrase == "nobody-came" {
			t.Errorf("docs/%s shows %s, which says nothing: %s", p.path, c.Name(), why.Phrase)
		}
	}
}

// checkSchedule holds the last line of what a schedule printed to how it is to end, which needs no
// servers.
func checkSchedule(t *testing.T, p page, text string) {
	t.Helper()
	if p.shows.schedule == "" || p.words != nil {
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

// TestSchedulesPrintWhatPagesShow plays the schedules of the pages, and compares what loadtest
// prints of them byte for byte.
func TestSchedulesPrintWhatPagesShow(t *testing.T) {
	testserver.NeedsServers(t)
	shop, err := catalog.Open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer shop.Close()
	all := allPages(t)
	played, err := playAll(t.Context(), shop, all)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if printed := played[p.shows.command()]; p.shows.schedule != "" && p.words == nil && !strings.Contains(read(t, p), "$ "+p.shows.command()+"\n"+printed+"```\n") {
			t.Errorf("docs/%s shows something else than its schedule prints: run make docs\n%s", p.path, printed)
		}
	}
}

// TestBothSides wants a scenario's page to show one strategy that fails and one that holds.
func TestBothSides(t *testing.T) {
	for _, sc := range scenario.All() {
		if fails, holds := bothSides(sc, ladder.Describe(ladder.All())); fails.Name == "" || holds.Name == "" {
			t.Errorf("%s is shown by %q and %q", sc.Name, fails.Name, holds.Name)
		}
	}
}

func TestRenderKeepsWhatIsWrittenByHand(t *testing.T) {
	p := page{language: english, title: "x", top: "one\n", parts: []string{"Why"}, shows: shown{strategy: "none", schedule: "A.select"}, facts: "three\n"}
	text := p.render("", "printed\n")
	text = strings.Replace(text, "## Why\n", "## Why\n\nBecause.\n", 1) + "\n## More\n"
	p.top = "two\n"
	text = p.render(text, "printed again\n")
	for _, want := range []string{"# x\n", "two\n", "Because.", "printed again\n", "three\n", "## More"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "one\n") || strings.Contains(text, "printed\n") || byHand(text, "Why") != "Because." {
		t.Errorf("rendered:\n%s", text)
	}
}

// byHand returns the text under a heading.
func byHand(text, heading string) string {
	_, rest, _ := strings.Cut(text, "\n## "+heading+"\n")
	part, _, _ := strings.Cut(rest, "\n## ")
	return strings.TrimSpace(part)
}
