package main

import (
	"strings"

	"stocklock/internal/lab/mistakes"
)

// page is one Markdown file. A chapter has a generated paragraph under each heading that is the name of a strategy
// or a scenario, and a generated block for what it shows. Any other page has generated blocks alone. All else is
// written by hand.
type page struct {
	language
	path  string            // below docs
	made  map[string]string // the generated blocks of a page that is no chapter, by their names, which may be empty
	facts map[string]string // the generated paragraphs of a chapter, by names
	shows shown             // what a chapter shows
}

const (
	madeMark = "<!-- made by `make docs`"
	madeEnd  = "<!-- end of what is made -->\n"
)

// madeBegin is the line above the generated block of a name.
func madeBegin(name string) string {
	if name != "" {
		name = ", " + name
	}
	return madeMark + name + ": do not edit -->\n"
}

// render puts the generated parts into a page. Output is what the page shows.
func (p page) render(old, output string) string {
	if p.facts == nil {
		for name, content := range p.made {
			old = replaceBlock(old, madeBegin(name), content)
		}
		return old
	}
	var b strings.Builder
	rest := replaceBlock(old, madeBegin(""), output)
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

// replaceBlock replaces the generated block below a line.
func replaceBlock(text, begin, content string) string {
	before, rest, ok := strings.Cut(text, begin)
	if !ok {
		return text
	}
	_, after, _ := strings.Cut(rest, madeEnd)
	return before + begin + content + madeEnd + after
}
