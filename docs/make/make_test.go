package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"stocklock/internal/lab/scenario"
	"stocklock/internal/strategy"
	"stocklock/internal/strategy/ladder"
)

// TestPagesAreUpToDate wants every page to say what the code says, to have an explanation, and to
// show a run of its own command that went as expected.
func TestPagesAreUpToDate(t *testing.T) {
	wanted := map[string]bool{}
	for _, p := range pages(strategy.Describe(ladder.All())) {
		wanted[p.path] = true
		content, err := os.ReadFile("../" + p.path)
		if err != nil {
			t.Errorf("%s is missing: run make docs", p.path)
			continue
		}
		text := string(content)
		if p.render(text, shownIn(text)) != text {
			t.Errorf("%s is stale: run make docs", p.path)
		}
		if !strings.Contains(text, p.fields) {
			t.Errorf("%s has lost the mark of its made part", p.path)
		}
		for _, part := range p.parts {
			if len(strings.Fields(byHand(text, part))) < 8 {
				t.Errorf("%s: nothing is written under %q", p.path, part)
			}
		}
		if p.command == "" {
			continue
		}
		if !strings.Contains(text, "$ "+p.command+"\n") {
			t.Errorf("%s shows another command than its own: run make docs-show", p.path)
		}
		if printed := shownIn(text); !strings.Contains(printed, "as predicted") || strings.Contains(printed, "surprise") || strings.Contains(printed, "skipped") {
			t.Errorf("%s shows a run that did not go as expected: run make docs-show", p.path)
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

// TestBothSides wants a scenario's page to show one strategy that fails and one that holds.
func TestBothSides(t *testing.T) {
	for _, sc := range scenario.All() {
		if sides := bothSides(sc, strategy.Describe(ladder.All())); sides[0].Name == "" || sides[1].Name == "" {
			t.Errorf("%s is shown by %q and %q", sc.Name, sides[0].Name, sides[1].Name)
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)#:]+)[)#]`)

// TestLinksLeadSomewhere follows the links inside the repository in all Markdown files.
func TestLinksLeadSomewhere(t *testing.T) {
	var files []string
	for _, pattern := range []string{"../../*.md", "../*.md", "../*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) < 30 {
		t.Fatalf("only %d Markdown files", len(files))
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(content), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), m[1])); err != nil {
				t.Errorf("%s links to %s, which does not exist", file, m[1])
			}
		}
	}
}

func TestRenderKeepsWhatIsWrittenByHand(t *testing.T) {
	p := page{title: "x", fields: "one\n", parts: []string{"Why"}, command: "loadtest list"}
	text := p.render("", "printed\nlines")
	text = strings.Replace(text, "## Why\n", "## Why\n\nBecause.\n", 1)
	p.fields = "two\n"
	text = p.render(text, shownIn(text))
	for _, want := range []string{"# x\n", "two\n", "Because.", "$ loadtest list\nprinted\nlines\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "one\n") || byHand(text, "Why") != "Because." || shownIn(text) != "printed\nlines" {
		t.Errorf("rendered:\n%s", text)
	}
}
