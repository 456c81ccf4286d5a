//go:build lab

package sql

import "embed"

//go:embed lab/*.sql
var lab embed.FS

func init() { Lab = lab }
