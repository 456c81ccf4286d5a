package main

import (
	"fmt"
	"strings"

	"stocklock/internal/lab/matrix"
)

// page is one Markdown file. The parts between its marks are generated, the rest is written by
// hand.
type page struct {
	language
	path     string
	title    string
	fields   string        // the generated block under the title
	parts    []string      // headings that are filled by hand
	command  string        // what shows it; empty where there is nothing to show
	pairs    []matrix.Pair // the cells that the command runs
	expected string        // the generated block at the end; empty for none
}

const (
	fieldsBegin   = "<!-- made by `make docs` from the code: do not edit -->\n"
	shownBegin    = "<!-- printed by the command: refresh with `make docs-show` -->\n"
	expectedBegin = "<!-- follows from what is declared in the code, by `make docs`: do not edit -->\n"
	madeEnd       = "<!-- end of what is made -->\n"
)

// render puts the generated blocks into a page, and makes the page if there is none. Shown is what
// its command has shown.
func (p page) render(old, shown string) string {
	if old == "" {
		old = p.skeleton()
	}
	text := replaceBlock(old, fieldsBegin, p.fields)
	text = replaceBlock(text, expectedBegin, p.expected)
	if p.command == "" {
		return text
	}
	return replaceBlock(text, shownBegin, shown)
}

// console is a block that shows a command with what it has printed.
func (p page) console(printed string) string {
	return fmt.Sprintf("```console\n$ %s\n%s\n```\n", p.command, printed)
}

func (p page) skeleton() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s%s", p.title, fieldsBegin, madeEnd)
	for _, part := range p.parts {
		fmt.Fprintf(&b, "\n## %s\n", part)
	}
	if p.command != "" {
		fmt.Fprintf(&b, "\n## %s\n\n%s%s", p.see, shownBegin, madeEnd)
	}
	if p.expected != "" {
		fmt.Fprintf(&b, "\n## %s\n\n%s%s", p.language.expected, expectedBegin, madeEnd)
	}
	return b.String()
}

// replaceBlock replaces the text between a mark and the next end.
func replaceBlock(text, begin, content string) string {
	before, rest, ok := strings.Cut(text, begin)
	if !ok {
		return text
	}
	_, after, _ := strings.Cut(rest, madeEnd)
	return before + begin + content + madeEnd + after
}

// shownIn returns the block of what a page's command showed when it was last run.
func shownIn(text string) string {
	_, rest, _ := strings.Cut(text, shownBegin)
	block, _, _ := strings.Cut(rest, madeEnd)
	return block
}

// byHand returns the text under a heading.
func byHand(text, heading string) string {
	_, rest, _ := strings.Cut(text, "\n## "+heading+"\n")
	part, _, _ := strings.Cut(rest, "\n## ")
	return strings.TrimSpace(part)
}
