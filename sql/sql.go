// Package sql holds the versioned migrations of the database as plain SQL files. The shop applies
// them when it starts; goose and the mysql client can read them, too.
package sql

import "embed"

// Migrations holds migrations/NNNNN_name.sql, in goose's format.
//
//go:embed migrations/*.sql
var Migrations embed.FS
