// Package mistakes knows where the chapters of docs/mistakes tell of each strategy and each scenario. A heading
// that is a name is the only list of these addresses: the page, the load test, other pages and the site read it.
package mistakes

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"

	"stocklock"
)

// Folder has the chapters.
const Folder = "docs/mistakes"

// Named finds the headings of a chapter that are names.
var Named = regexp.MustCompile("(?m)^## `([a-z0-9-]+)`\n")

// chapters has the English chapter of each name.
var chapters = sync.OnceValue(func() map[string]string {
	all, err := fs.Glob(stocklock.Pages, Folder+"/*.md")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	of := map[string]string{}
	for _, chapter := range all {
		if strings.HasSuffix(chapter, ".zh-CN.md") {
			continue
		}
		text, err := fs.ReadFile(stocklock.Pages, chapter)
		if err != nil {
			panic(err) // it is part of the program
		}
		for _, m := range Named.FindAllStringSubmatch(string(text), -1) {
			of[m[1]] = chapter
		}
	}
	return of
})

// Section is the path of the chapter on a strategy or a scenario, and the heading in it:
// docs/mistakes/leases.md#setnx. The language is en or zh-CN. It is empty for a name without a section, as that of
// a strategy of a reader's own.
func Section(name, language string) string {
	chapter := chapters()[name]
	if chapter == "" {
		return ""
	}
	return stocklock.InLanguage(chapter, language) + "#" + name
}

// Names are those of the strategies and the scenarios that have a section, sorted.
func Names() []string {
	var names []string
	for name := range chapters() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
