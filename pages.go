// Package stocklock carries what the lab's page shows of this repository: the course and the other pages,
// and the code of the strategies.
package stocklock

import (
	"embed"
	"strings"
)

// Pages has the pages of docs, and internal/strategy.
//
//go:embed docs/*.md docs/course docs/mistakes internal/strategy
var Pages embed.FS

// InLanguage is a page in a language, en or zh-CN: docs/a.zh-CN.md of docs/a.md, and the other way round.
func InLanguage(page, language string) string {
	page = strings.TrimSuffix(strings.TrimSuffix(page, ".md"), ".zh-CN")
	if language == "zh-CN" {
		return page + ".zh-CN.md"
	}
	return page + ".md"
}
