// Package lab has the migrations of the lab's own tables, and adds them to those of the shop wherever it
// is imported.
package lab

import (
	"embed"

	"stocklock/sql"
)

//go:embed *.sql
var migrations embed.FS

func init() { sql.Lab = migrations }
