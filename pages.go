// Package stocklock carries what the lab's page shows of this repository: the pages of the
// strategies and scenarios, and the code of the strategies.
package stocklock

import "embed"

// Pages has docs/strategies, docs/scenarios, docs/expected*.md, docs/is-it-mine*.md and internal/strategy.
//
//go:embed docs/strategies docs/scenarios docs/expected.md docs/expected.zh-CN.md docs/is-it-mine.md docs/is-it-mine.zh-CN.md internal/strategy
var Pages embed.FS
