package main

import (
	"strings"

	"stocklock/internal/lab/mistakes"
)

// page is one Markdown file. A chapter has a generated paragraph under each heading that is the name of a strategy
// or a scenario, and a generated block for what it shows. Any other page has one generated block. All else is
// written by hand.
type page struct {
	language
	path  string            // below docs
	top   string            // the generated block of a page that is no chapter
	facts map[string]string // the generated paragraphs of a chapter, by names
	shows shown             // what a chapter shows
}

const (
	madeBegin = "<!-- made by `make docs`: do not edit -->\n"
	madeEnd   = "<!-- end of what is made -->\n"
)

// render puts the generated parts into a page. Output is what the page shows.
func (p page) render(old, output string) string {
	if p.facts == nil {
		return replaceBlock(old, p.top)
	}
	var b strings.Builder
	rest := replaceBlock(old, output)
	for {
		heading := mistakes.Named.FindStringSubmatchIndex(rest)
		if heading == nil {
			return b.String() + rest
		}
		name := rest[heading[2]:heading[3]]
		b.WriteString(rest[:heading[1]] + "\n" + p.facts[name])
		_, rest, _ = strings.Cut(rest[heading[1]+1:], "\n\n")
		b.WriteString("\n")
	}
}

// replaceBlock replaces the generated block.
func replaceBlock(text string, content string) string {
	before, rest, ok := strings.Cut(text, madeBegin)
	if !ok {
		return text
	}
	_, after, _ := strings.Cut(rest, madeEnd)
	return before + madeBegin + content + madeEnd + after
}
