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

// Lab holds the tables that strategies keep which break. Package sql/lab sets it, where it is imported: a
// production shop has none. Each of these migrations may be applied again.
var Lab fs.FS
