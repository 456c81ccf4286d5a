// Package sql holds the versioned migrations of the database as plain SQL files. The shop applies
// them when it starts; goose and the mysql client can read them, too.
package sql

import (
	"embed"
	"io/fs"
)

// Migrations holds migrations/NNNNN_name.sql, in goose's format. The numbers 5 and 12 were tables of the lab.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// Lab holds lab/NNNNN_name.sql: what strategies keep that break. It is nil in a build without the lab. Each
// of them may be applied again.
var Lab fs.FS
