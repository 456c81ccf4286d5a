package main

import (
	"fmt"
	"strings"
)

// page is one Markdown file. The parts between its marks are generated, the rest is written by
// hand.
type page struct {
	language
	path    string // below docs
	english string // the name of the English page's file
	title   string
	top     string   // the generated block under the title
	parts   []string // headings that are filled by hand
	shows   shown    // the zero value for a page that shows nothing
	facts   string   // generated, behind what it shows
}

const (
	madeBegin = "<!-- made by `make docs`: do not edit -->\n"
	madeEnd   = "<!-- end of what is made -->\n"
)

// render puts the generated blocks into a page, and makes the page if there is none. Output is
// what the page shows.
func (p page) render(old, output string) string {
	if old == "" {
		old = p.skeleton()
	}
	text := replaceBlock(old, 0, p.top)
	if p.shows == (shown{}) {
		return text
	}
	return replaceBlock(text, 1, output+"\n"+p.facts)
}

func (p page) skeleton() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s%s", p.title, madeBegin, madeEnd)
	for _, part := range p.parts {
		fmt.Fprintf(&b, "\n## %s\n", part)
	}
	if p.shows != (shown{}) {
		fmt.Fprintf(&b, "\n## %s\n\n%s%s", p.see, madeBegin, madeEnd)
	}
	return b.String()
}

// replaceBlock replaces the generated block with this number.
func replaceBlock(text string, number int, content string) string {
	before, rest, ok := strings.Cut(text, madeBegin)
	if !ok {
		return text
	}
	block, after, _ := strings.Cut(rest, madeEnd)
	if number > 0 {
		return before + madeBegin + block + madeEnd + replaceBlock(after, number-1, content)
	}
	return before + madeBegin + content + madeEnd + after
}
