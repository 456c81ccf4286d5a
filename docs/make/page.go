package main

import (
	"fmt"
	"strings"

	"stocklock/internal/lab/matrix"
)

// page is one Markdown file. The parts between its marks are generated, the rest is written by
// hand.
type page struct {
	path    string
	title   string
	fields  string        // the generated block under the title
	parts   []string      // headings that are filled by hand
	command string        // what shows it; empty where there is nothing to show
	pairs   []matrix.Pair // the cells that the command runs
}

const (
	fieldsBegin = "<!-- made by `make docs` from the code: do not edit -->\n"
	shownBegin  = "<!-- printed by the command: refresh with `make docs-show` -->\n"
	madeEnd     = "<!-- end of what is made -->\n"
)

// render puts the generated blocks into a page, and makes the page if there is none.
func (p page) render(old, printed string) string {
	if old == "" {
		old = p.skeleton()
	}
	text := replaceBlock(old, fieldsBegin, p.fields)
	if p.command == "" {
		return text
	}
	return replaceBlock(text, shownBegin, fmt.Sprintf("```console\n$ %s\n%s\n```\n", p.command, printed))
}

func (p page) skeleton() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s%s", p.title, fieldsBegin, madeEnd)
	for _, part := range p.parts {
		fmt.Fprintf(&b, "\n## %s\n", part)
	}
	if p.command != "" {
		fmt.Fprintf(&b, "\n## See it\n\n%s%s", shownBegin, madeEnd)
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

// shownIn returns what the command of a page printed when it was last run.
func shownIn(text string) string {
	_, rest, _ := strings.Cut(text, shownBegin)
	block, _, ok := strings.Cut(rest, madeEnd)
	if !ok {
		return ""
	}
	_, printed, _ := strings.Cut(strings.TrimPrefix(block, "```console\n$ "), "\n")
	return strings.TrimSuffix(printed, "\n```\n")
}

// byHand returns the text under a heading.
func byHand(text, heading string) string {
	_, rest, _ := strings.Cut(text, "\n## "+heading+"\n")
	part, _, _ := strings.Cut(rest, "\n## ")
	return strings.TrimSpace(part)
}
