package pages

import (
	"io/fs"
	"strings"
	"testing"

	"stocklock"
)

// TestOldAddressesLeadSomewhere: each page of an earlier version leads to a page, in its language where that is
// translated, and to a heading that is there.
func TestOldAddressesLeadSomewhere(t *testing.T) {
	old := OfEarlierVersions()
	for _, page := range old {
		file, heading, _ := strings.Cut(Moved(page), "#")
		if file == "CONTRIBUTING.md" { // it is in the repository alone
			continue
		}
		text, err := fs.ReadFile(stocklock.Pages, file)
		if err != nil {
			t.Errorf("%s leads to %q: %v", page, Moved(page), err)
			continue
		}
		if heading != "" && !strings.Contains(string(text), "\n## `"+heading+"`\n") {
			t.Errorf("%s leads to %s, which has no such heading", page, Moved(page))
		}
		if _, err := fs.Stat(stocklock.Pages, page); err == nil {
			t.Errorf("%s is there, and leads to %s", page, Moved(page))
		}
	}
	if len(old) < 2*63 {
		t.Errorf("only %d pages have moved", len(old))
	}
	for page, want := range map[string]string{
		"docs/strategies/setnx.md":        "docs/mistakes/leases.md#setnx",
		"docs/scenarios/pause.zh-CN.md":   "docs/mistakes/leases.zh-CN.md#pause",
		"docs/choosing.zh-CN.md":          "docs/choose.zh-CN.md",
		"docs/performance.md":             "docs/measurements.md",
		"docs/performance.zh-CN.md":       "docs/measurements.md",
		"docs/strategies/magic.md":        "",
		"docs/glossary.md":                "",
		"docs/strategies/README.zh-CN.md": "docs/mistakes/README.zh-CN.md",
	} {
		if got := Moved(page); got != want {
			t.Errorf("%s leads to %q, want %q", page, got, want)
		}
	}
}
