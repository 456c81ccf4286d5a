// Package stocklock carries what the lab's page shows of this repository: the course and the other pages,
// and the code of the strategies.
package stocklock

import "embed"

// Pages has the pages of docs, and internal/strategy.
//
//go:embed docs/*.md docs/course docs/mistakes internal/strategy
var Pages embed.FS
