package main

import (
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"stocklock/internal/lab/scenario"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/ladder"
)

// TestPagesAreUpToDate wants every page to say in both languages what the code says, to have an
// explanation, and to show a run of its own command that went as expected.
func TestPagesAreUpToDate(t *testing.T) {
	in, err := languages()
	if err != nil {
		t.Fatal(err)
	}
	wanted := map[string]bool{}
	for _, l := range in {
		for _, p := range l.pages(strategy.Describe(ladder.All())) {
			wanted[p.path] = true
			checkPage(t, p)
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
}

func checkPage(t *testing.T, p page) {
	t.Helper()
	content, err := os.ReadFile("../" + p.path)
	if err != nil {
		t.Errorf("%s is missing: run make docs", p.path)
		return
	}
	text := string(content)
	if p.render(text, shownIn(text)) != text {
		t.Errorf("%s is stale: run make docs", p.path)
	}
	if !strings.Contains(text, p.fields) || !strings.Contains(text, p.expected) {
		t.Errorf("%s has lost the mark of a made part", p.path)
	}
	for _, part := range p.parts {
		if utf8.RuneCountInString(byHand(text, part)) < 20 {
			t.Errorf("%s: nothing is written under %q", p.path, part)
		}
	}
	if p.command == "" {
		return
	}
	if !strings.HasSuffix(text, expectedBegin+p.expected+madeEnd) || !strings.Contains(before(text, p.see), "\n## "+p.parts[0]+"\n") {
		t.Errorf("%s: want the story first, then what its command shows, and the table at the end", p.path)
	}
	if !strings.Contains(text, "$ "+p.command+"\n") {
		t.Errorf("%s shows another command than its own: run make docs-show", p.path)
	}
	if printed := shownIn(text); !strings.Contains(printed, "as predicted") || strings.Contains(printed, "surprise") || strings.Contains(printed, "skipped") {
		t.Errorf("%s shows a run that did not go as expected: run make docs-show", p.path)
	}
}

// before is the text of a page before a heading.
func before(text, heading string) string {
	text, _, _ = strings.Cut(text, "\n## "+heading+"\n")
	return text
}

// TestBothSides wants a scenario's page to show one strategy that fails and one that holds.
func TestBothSides(t *testing.T) {
	for _, sc := range scenario.All() {
		if sides := bothSides(sc, strategy.Describe(ladder.All())); sides[0].Name == "" || sides[1].Name == "" {
			t.Errorf("%s is shown by %q and %q", sc.Name, sides[0].Name, sides[1].Name)
		}
	}
}

func TestRenderKeepsWhatIsWrittenByHand(t *testing.T) {
	p := page{language: english, title: "x", fields: "one\n", parts: []string{"Why"}, command: "loadtest list", expected: "three\n"}
	text := p.render("", p.console("printed\nlines"))
	text = strings.Replace(text, "## Why\n", "## Why\n\nBecause.\n", 1)
	p.fields = "two\n"
	text = p.render(text, shownIn(text))
	for _, want := range []string{"# x\n", "two\n", "Because.", "$ loadtest list\nprinted\nlines\n", "three\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "one\n") || byHand(text, "Why") != "Because." || shownIn(text) != p.console("printed\nlines") {
		t.Errorf("rendered:\n%s", text)
	}
}
