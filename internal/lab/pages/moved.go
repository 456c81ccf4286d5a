package pages

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"stocklock"
	"stocklock/internal/lab/mistakes"
)

// moved has the pages of earlier versions that are a part of another one now, by their English paths, and where they are.
var moved = map[string]string{
	"docs/README.md":                    "docs/mistakes/README.md",
	"docs/adding-a-strategy.md":         "CONTRIBUTING.md#add-a-strategy",
	"docs/baskets.md":                   "docs/choose.md",
	"docs/choosing.md":                  "docs/choose.md",
	"docs/course/output.md":             "docs/course/sheet.md",
	"docs/course/summary.md":            "docs/course/sheet.md",
	"docs/course/twelve-questions.md":   "docs/course/sheet.md",
	"docs/course/transcripts/README.md": "docs/course/transcripts.md",
	"docs/docker.md":                    "docs/using.md",
	"docs/expected.md":                  "docs/mistakes/README.md",
	"docs/live.md":                      "docs/using.md",
	"docs/loadtest.md":                  "docs/using.md",
	"docs/lock-model.md":                "docs/lock-protocol.md",
	"docs/matrix.md":                    "docs/mistakes/README.md",
	"docs/performance.md":               "docs/measurements.md",
	"docs/reliability.md":               "docs/measurements.md",
	"docs/scaling.md":                   "docs/operate.md",
	"docs/scenarios/README.md":          "docs/mistakes/README.md",
	"docs/strategies/README.md":         "docs/mistakes/README.md",
	"docs/topologies.md":                "docs/choose.md",
}

// OfEarlierVersions are the paths of pages that have moved, in both languages.
func OfEarlierVersions() []string {
	english := slices.Collect(maps.Keys(moved))
	for _, name := range mistakes.Names() {
		english = append(english, "docs/strategies/"+name+".md", "docs/scenarios/"+name+".md")
	}
	all := slices.Clone(english)
	for _, page := range english {
		all = append(all, stocklock.InLanguage(page, "zh-CN"))
	}
	return all
}

// Moved is where a page of an earlier version is now: its path, with a heading where only a part of that page is
// meant. It is empty for a page that has not moved. Pages of strategies and scenarios were docs/strategies/NAME.md
// and docs/scenarios/NAME.md.
func Moved(page string) string {
	language, english := Language(page), stocklock.InLanguage(page, "en")
	now, is := moved[english]
	if folder := path.Dir(english); !is && (folder == "docs/strategies" || folder == "docs/scenarios") {
		return mistakes.Section(strings.TrimSuffix(path.Base(english), ".md"), language)
	}
	translated := stocklock.InLanguage(now, language)
	if _, err := fs.Stat(stocklock.Pages, translated); err != nil {
		return now
	}
	return translated
}
